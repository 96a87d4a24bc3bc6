-- reclaim: takes a run back whose owner is gone. Any number of sweepers may call it at once.
-- keys: run log audit effects snapshot queue timers bell wake session? session_log? open? lapses?
-- args: id group agent entry lease:int
-- reply: RETRY attempt delay | REQUEUED | ENDED sequence | HELD | GONE
-- uses: clock int log tell enqueue dequeue ending
local r = redis.call('HMGET', run, 'state', 'entry', 'lease_until', 'sequence', 'attempt', 'losses', 'max_losses', 'backoff',
  'cancel_version')
local at = now_ms()
if (r[1] ~= 'queued' and r[1] ~= 'running') or r[2] ~= entry then
  dequeue(queue, group, entry)
  if r[1] ~= 'running' then
    redis.call('ZREM', timers, 'lease:' .. id)
  end
  return { 'GONE' }
end
if r[1] == 'queued' then
  redis.call('ZREM', timers, 'lease:' .. id)
  -- Another sweeper was faster, and the run pauses before its next attempt: no entry carries it until then.
  if entry == '' then
    return { 'GONE' }
  end
  local pending = redis.call('XPENDING', queue, group, entry, entry, 1)[1]
  if not pending then
    return { 'GONE' }
  end
  -- Delivered, but its reader died before it claimed: nobody owned it, so nothing is lost but time.
  if pending[3] < lease then
    return { 'HELD' }
  end
  dequeue(queue, group, entry)
  redis.call('HSET', run, 'entry', enqueue(queue, wake, agent, id))
  return { 'REQUEUED' }
end
if tonumber(r[3] or 0) > at then
  return { 'HELD' }
end
local k = { run = run, log = log, audit = audit, effects = effects, snapshot = snapshot, queue = queue, timers = timers, bell = bell,
  session = session, session_log = session_log, open = open, lapses = lapses }
local sequence, attempt, losses = tonumber(r[4]), tonumber(r[5]) + 1, tonumber(r[6] or 0) + 1
if r[9] or losses >= tonumber(r[7]) then
  redis.call('HSET', run, 'losses', losses, 'fence', '')
  local last
  if r[9] then
    -- A stop was asked for and the worker is gone: there is nobody left to interrupt.
    last = end_run(k, id, group, at, sequence, 'cancelled')
  else
    last = end_run(k, id, group, at, sequence, 'failed',
      '{"error":{"code":"worker_lost","message":"The worker was lost ' .. int(losses) .. ' times; no attempt is left."}}')
  end
  return { 'ENDED', last }
end
sequence = sequence + 1
write_event(log, audit, sequence, at, 'run.retrying', '{"attempt":' .. int(attempt) .. ',"cause":"worker_lost"}')
dequeue(queue, group, entry)
-- The first retry is at once; then 1, 2, 4 … times the backoff, so that a run that kills its workers does not kill them quickly.
-- Up to a quarter more, decided by the run: what one dead worker had does not come back all at once.
local spread = tonumber(string.sub(redis.sha1hex(id .. int(losses)), 1, 4), 16) / 65536
local delay = losses == 1 and 0 or math.floor(math.min(tonumber(r[8]) * 2 ^ (losses - 2), 3600000) * (1 + spread / 4))
local carrier = ''
if delay == 0 then
  carrier = enqueue(queue, wake, agent, id)
else
  redis.call('ZADD', timers, int(at + delay), 'retry:' .. id)
end
redis.call('HSET', run, 'state', 'queued', 'attempt', attempt, 'losses', losses, 'sequence', int(sequence), 'entry', carrier, 'fence', '',
  'last_activity_at', int(at))
redis.call('HDEL', run, 'lease_until')
redis.call('ZREM', timers, 'lease:' .. id)
tell(bell, session, session_log, id, sequence, sequence, at)
return { 'RETRY', attempt, delay }
