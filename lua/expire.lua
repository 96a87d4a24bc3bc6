-- expire: the limit of a wait has passed: the run fails, or goes on if it only meant to sleep.
-- keys: run log audit effects snapshot queue timers bell wake session? session_log? open? lapses?
-- args: id group agent
-- reply: RESUMED sequence | FAILED sequence | EARLY | GONE
-- uses: clock int log tell enqueue ending
local r = redis.call('HMGET', run, 'state', 'wait_id', 'wait_mode', 'wait_until', 'sequence')
if r[1] ~= 'waiting' or tonumber(r[4] or 0) == 0 then
  redis.call('ZREM', timers, 'wait:' .. id)
  return { 'GONE' }
end
local at = now_ms()
if tonumber(r[4]) > at then
  return { 'EARLY' }
end
local sequence = tonumber(r[5]) + 1
if r[3] == 'fail' then
  local k = { run = run, log = log, audit = audit, effects = effects, snapshot = snapshot, queue = queue, timers = timers, bell = bell,
    session = session, session_log = session_log, open = open, lapses = lapses }
  local last = end_run(k, id, group, at, sequence - 1, 'failed',
    '{"error":{"code":"wait_expired","message":"Nobody answered within the wait\'s limit."}}')
  return { 'FAILED', last }
end
write_event(log, audit, sequence, at, 'input.received', '{"input_id":null,"wait_id":"' .. r[2] .. '","by":"timer","value":null}')
redis.call('HSET', effects, 'wait:' .. r[2], 'answered :- ' .. int(sequence) .. ' null')
redis.call('HSET', run, 'state', 'queued', 'sequence', int(sequence), 'resume', 'null', 'last_activity_at', int(at),
  'entry', enqueue(queue, wake, agent, id))
redis.call('HDEL', run, 'wait_id', 'wait_mode', 'wait_until')
redis.call('ZREM', timers, 'wait:' .. id)
tell(bell, session, session_log, id, sequence, sequence, at)
return { 'RESUMED', sequence }
