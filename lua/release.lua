-- release: the owner gives its run back, so that another worker goes on at once. It does not count as a loss.
-- keys: run log audit effects snapshot queue timers bell wake session? session_log? open? lapses?
-- args: id group agent fence cause
-- reply: OK sequence | FENCED | CLOSED state
-- uses: clock int log tell enqueue dequeue ending
local r = redis.call('HMGET', run, 'state', 'fence', 'sequence', 'attempt', 'entry', 'released', 'cancel_version')
if r[6] == fence then
  return { 'OK', tonumber(r[3]) }
end
if r[2] ~= fence then
  return { 'FENCED' }
end
if r[1] ~= 'running' then
  return { 'CLOSED', r[1] }
end
if r[7] then
  -- A stop was asked for before its owner could notice, and a queued run is stopped at once: nobody else starts it for that.
  local k = { run = run, log = log, audit = audit, effects = effects, snapshot = snapshot, queue = queue, timers = timers, bell = bell,
    session = session, session_log = session_log, open = open, lapses = lapses }
  redis.call('HSET', run, 'released', fence, 'fence', '')
  local last = end_run(k, id, group, now_ms(), tonumber(r[3]), 'cancelled')
  return { 'OK', last }
end
local at, sequence, attempt = now_ms(), tonumber(r[3]) + 1, tonumber(r[4]) + 1
write_event(log, audit, sequence, at, 'run.retrying', '{"attempt":' .. int(attempt) .. ',"cause":' .. cause .. '}')
dequeue(queue, group, r[5])
local entry = enqueue(queue, wake, agent, id)
redis.call('HSET', run, 'state', 'queued', 'attempt', attempt, 'sequence', int(sequence), 'entry', entry, 'released', fence, 'fence', '',
  'last_activity_at', int(at))
redis.call('HDEL', run, 'lease_until')
redis.call('ZREM', timers, 'lease:' .. id)
tell(bell, session, session_log, id, sequence, sequence, at)
return { 'OK', sequence }
