-- park: the owner lets its run wait for an answer or a time, holding no lease and no worker.
-- keys: run log audit effects queue timers bell session? session_log?
-- args: id group fence wait mode timeout:int payload
-- reply: PARKED sequence | ANSWERED record | CANCELLED version | FENCED | CLOSED state
-- uses: clock int rfc3339 log tell dequeue
-- `mode` says what the limit does: fail (the run fails) or resume (it goes on). `timeout` is in ms; 0: no limit.
local field = 'wait:' .. wait
local held = redis.call('HGET', effects, field)
local status, owner, known, stored
if held then
  status, owner, known, stored = string.match(held, '^(%S+) (%S+) (%d+) (.*)$')
end
-- Before FENCED: parking gives the lease up, so a resent call meets its own mark here.
if status == 'open' and owner == fence then
  return { 'PARKED', tonumber(known) }
end
local r = redis.call('HMGET', run, 'state', 'fence', 'sequence', 'cancel_version', 'entry')
if r[2] ~= fence then
  return { 'FENCED' }
end
if status == 'answered' then
  return { 'ANSWERED', stored }
end
if r[1] ~= 'running' then
  return { 'CLOSED', r[1] }
end
if r[4] then
  return { 'CANCELLED', tonumber(r[4]) }
end
local at, sequence = now_ms(), tonumber(r[3]) + 1
local limit = 0
if timeout > 0 then
  limit = at + timeout
  payload = string.sub(payload, 1, -2) .. ',"expires_at":"' .. rfc3339(limit) .. '"}'
end
write_event(log, audit, sequence, at, 'run.waiting', payload)
redis.call('HSET', effects, field, 'open ' .. fence .. ' ' .. int(sequence) .. ' null')
dequeue(queue, group, r[5])
redis.call('HSET', run, 'state', 'waiting', 'sequence', int(sequence), 'last_activity_at', int(at), 'wait_id', wait, 'wait_mode', mode,
  'wait_until', int(limit), 'entry', '', 'fence', '')
redis.call('HDEL', run, 'lease_until')
redis.call('ZREM', timers, 'lease:' .. id)
if limit > 0 then
  redis.call('ZADD', timers, int(limit), 'wait:' .. id)
end
tell(bell, session, session_log, id, sequence, sequence, at)
return { 'PARKED', sequence }
