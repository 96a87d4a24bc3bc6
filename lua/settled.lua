-- settled: strikes a timer that was served, unless the run ended meanwhile and the same timer has to be served again.
-- keys: run timers
-- args: member finished
-- reply: OK | AGAIN
if (redis.call('HGET', run, 'finished_at') or '') ~= finished then
  return { 'AGAIN' }
end
redis.call('ZREM', timers, member)
return { 'OK' }
