-- claim: makes a worker the owner of a delivered run, under a fencing token of its own.
-- keys: run log audit queue timers bell session? session_log?
-- args: id group entry consumer fence lease:int worker max_losses:int backoff:int
-- reply: OK attempt sequence | HELD | GONE | SESSION name
-- uses: clock int log tell grown dequeue
local r = redis.call('HMGET', run, 'state', 'fence', 'entry', 'sequence', 'attempt', 'resume', 'started_at', 'session')
if r[8] and not session then
  -- A queue entry names the run only: the caller comes again with the keys of its session.
  return { 'SESSION', r[8] }
end
local state, sequence, attempt, resume = r[1], tonumber(r[4] or 0), tonumber(r[5] or 0), r[6]
if state == 'running' and r[2] == fence then
  return { 'OK', attempt, sequence }
end
if state == 'running' and r[3] == entry then
  return { 'HELD' }
end
-- Ended, cancelled, or carried by a newer entry: this one has nothing to say any more.
if state ~= 'queued' or r[3] ~= entry then
  dequeue(queue, group, entry)
  return { 'GONE' }
end
local at = now_ms()
local kind, detail = 'run.started', ''
if resume then
  kind, detail = 'run.resumed', ',"input_id":' .. resume
else
  attempt = math.max(attempt, 1)
end
sequence = sequence + 1
write_event(log, audit, sequence, at, kind, '{"attempt":' .. int(attempt) .. ',"worker":' .. worker .. detail .. '}')
redis.call('HSET', run, 'state', 'running', 'fence', fence, 'batch', 0, 'batch_sequence', int(sequence), 'sequence', int(sequence),
  'attempt', attempt, 'lease_until', int(at + lease), 'last_activity_at', int(at), 'started_at', r[7] or int(at),
  'max_losses', max_losses, 'backoff', backoff, 'resumed', resume and 1 or 0)
redis.call('HDEL', run, 'resume')
-- An entry that was looked at and not delivered gets into the list of leases too.
redis.call('XCLAIM', queue, group, consumer, 0, entry, 'FORCE', 'JUSTID')
redis.call('ZADD', timers, int(at + lease), 'lease:' .. id)
-- With what happened since its last owner.
mark_grown(timers, id, sequence - 4, sequence, at)
tell(bell, session, session_log, id, sequence, sequence, at)
return { 'OK', attempt, sequence }
