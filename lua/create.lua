-- create: writes a run's record, its first event and its queue entry, all or nothing.
-- keys: run log audit queue timers bell wake agents tenant session? session_log? session_runs? open? sessions? others...
-- args: id group agent nonce payload fields...
-- reply: OK sequence | EXISTS sequence | BUSY | CHANGED
-- uses: clock int log tell enqueue gate
-- `others` are the records of all runs in `open`, where the session's policy makes a difference.
if redis.call('EXISTS', run) == 1 then
  local r = redis.call('HMGET', run, 'nonce', 'sequence')
  -- The same nonce is the same call, resent because its reply was lost: it did create the run.
  return { r[1] == nonce and 'OK' or 'EXISTS', tonumber(r[2]) }
end
local held = session and held_back(session, open, others)
if held == 'CHANGED' or held == 'BUSY' then
  return { held }
end
local at = now_ms()
local stamp = int(at)
if redis.call('EXISTS', queue) == 0 then
  redis.call('XGROUP', 'CREATE', queue, group, '0', 'MKSTREAM')
end
redis.call('SADD', agents, agent)
write_event(log, audit, 1, at, 'run.created', payload)
-- A run that has to wait for those before it in its session is in no queue yet: nobody can claim it before `admit`.
local entry = held and '' or enqueue(queue, wake, agent, id)
redis.call('HSET', run, 'run_id', id, 'agent', agent, 'nonce', nonce, 'state', 'queued', 'sequence', 1, 'attempt', 0, 'entry', entry,
  'listed_in', tenant, 'created_at', stamp, 'last_activity_at', stamp, unpack(fields))
redis.call('ZADD', tenant, stamp, id)
local key = redis.call('HMGET', run, 'idempotency', 'fingerprint', 'session_id', 'tenant', 'initiator')
if key[1] then
  redis.call('ZADD', timers, stamp, 'key:' .. id .. ' ' .. key[1] .. ' ' .. key[2])
end
local place = tell(bell, session, session_log, id, 1, 1, at)
if session then
  local name = string.sub(session, -30)
  redis.call('HSET', run, 'session', name, 'listed_in', tenant .. ' ' .. name .. ' ' .. sessions)
  if redis.call('HSETNX', session, 'created_at', stamp) == 1 then
    redis.call('HSET', session, 'session_id', key[3], 'tenant', key[4], 'initiator', key[5])
    redis.call('PERSIST', session)
    redis.call('ZADD', sessions, stamp, name)
  end
  redis.call('ZADD', session_runs, int(place), id)
  redis.call('ZADD', open, int(place), id)
  if held then
    redis.call('HSET', run, 'held', 1)
    redis.call('ZADD', timers, stamp, 'held:' .. id .. ' ' .. name)
  end
end
return { 'OK', 1 }
