-- create: writes a run's record, its first event and its queue entry, all or nothing.
-- keys: run log audit queue timers bell wake agents tenant session?
-- args: id group agent nonce payload fields...
-- reply: OK sequence | EXISTS sequence
-- uses: clock int log bell enqueue
if redis.call('EXISTS', run) == 1 then
  local r = redis.call('HMGET', run, 'nonce', 'sequence')
  -- The same nonce is the same call, resent because its reply was lost: it did create the run.
  return { r[1] == nonce and 'OK' or 'EXISTS', tonumber(r[2]) }
end
local at = now_ms()
local stamp = int(at)
if redis.call('EXISTS', queue) == 0 then
  redis.call('XGROUP', 'CREATE', queue, group, '0', 'MKSTREAM')
end
redis.call('SADD', agents, agent)
write_event(log, audit, 1, at, 'run.created', payload)
local entry = enqueue(queue, wake, agent, id)
redis.call('HSET', run, 'run_id', id, 'agent', agent, 'nonce', nonce, 'state', 'queued', 'sequence', 1, 'attempt', 0, 'entry', entry,
  'listed_in', session and (tenant .. ' ' .. session) or tenant, 'created_at', stamp, 'last_activity_at', stamp, unpack(fields))
redis.call('ZADD', tenant, stamp, id)
if session then
  redis.call('ZADD', session, stamp, id)
end
local key = redis.call('HMGET', run, 'idempotency', 'fingerprint')
if key[1] then
  redis.call('ZADD', timers, stamp, 'key:' .. id .. ' ' .. key[1] .. ' ' .. key[2])
end
ring(bell, id)
return { 'OK', 1 }
