-- forget: takes an expired run out of the lists that name it.
-- keys: run timers tenant session?
-- args: id member
-- reply: OK | EARLY
if redis.call('EXISTS', run) == 1 then
  return { 'EARLY' }
end
redis.call('ZREM', tenant, id)
if session then
  redis.call('ZREM', session, id)
end
redis.call('ZREM', timers, member)
return { 'OK' }
