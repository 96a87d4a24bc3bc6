-- forget: takes an expired run out of the lists that name it, and ends its session with the last of them.
-- keys: run timers tenant session? session_log? session_runs? open? lapses? sessions?
-- args: id member keep:int
-- reply: OK | EARLY
-- uses: close
if redis.call('EXISTS', run) == 1 then
  return { 'EARLY' }
end
redis.call('ZREM', tenant, id)
if session then
  redis.call('ZREM', open, id)
  -- Only who takes the last one out: said twice, the second one may meet a new session of the same name.
  if redis.call('ZREM', session_runs, id) == 1 and redis.call('EXISTS', session_runs) == 0 then
    close_session({ session = session, session_log = session_log, open = open, lapses = lapses, sessions = sessions }, keep)
  end
end
redis.call('ZREM', timers, member)
return { 'OK' }
