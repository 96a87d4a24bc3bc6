-- append: one numbered batch of a worker's events, once however often it is sent.
-- keys: run log audit timers bell session? session_log?
-- args: id fence batch:int most_events:int most_bytes:int event_rate:int byte_rate:int events...
-- reply: OK sequence cancel_version | SEEN sequence cancel_version | FENCED | CLOSED state | GAP expected | FULL what | BUSY wait
-- uses: clock int log tell grown size
local r = redis.call('HMGET', run, 'state', 'fence', 'batch', 'sequence', 'cancel_version', 'size')
local last, cancel = tonumber(r[3] or 0), tonumber(r[5] or 0)
if r[2] ~= fence then
  return { 'FENCED' }
end
-- Before CLOSED: a last batch whose reply was lost is resent after the run ended, and it was written.
if batch <= last then
  return { 'SEEN', tonumber(redis.call('HGET', run, 'batch_sequence')), cancel }
end
if r[1] ~= 'running' then
  return { 'CLOSED', r[1] }
end
if batch ~= last + 1 then
  return { 'GAP', last + 1 }
end
local at, before = now_ms(), tonumber(r[4])
local sequence, stamp, bytes = before, int(at), 0
for i = 2, #events, 3 do
  bytes = bytes + #events[i]
end
local size, full, wait = grow_size(r[6], #events / 3, bytes, at, most_events, most_bytes, event_rate, byte_rate)
if full then
  return { 'FULL', full }
end
if wait then
  return { 'BUSY', wait }
end
for i = 1, #events, 3 do
  sequence = sequence + 1
  write_event(log, audit, sequence, stamp, events[i], events[i + 1], events[i + 2])
end
-- The answer is kept beside the number: a cancel request may take the next sequence before this batch is resent.
local latest = int(sequence)
redis.call('HSET', run, 'sequence', latest, 'batch', int(batch), 'batch_sequence', latest, 'last_activity_at', stamp, 'size', size)
mark_grown(timers, id, before, sequence, at)
tell(bell, session, session_log, id, before + 1, sequence, at)
return { 'OK', sequence, cancel }
