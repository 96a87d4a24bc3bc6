-- append: one numbered batch of a worker's events, once however often it is sent.
-- keys: run log audit timers bell session? session_log?
-- args: id fence batch:int most_events:int most_bytes:int event_rate:int byte_rate:int events...
-- reply: OK sequence cancel_version | SEEN sequence cancel_version | FENCED | CLOSED state | GAP expected | FULL what | BUSY wait
-- uses: clock int log tell grown size
local r = redis.call('HMGET', run, 'state', 'fence', 'batch', 'batch_sequence', 'sequence', 'cancel_version')
local last, cancel = tonumber(r[3] or 0), tonumber(r[6] or 0)
if r[2] ~= fence then
  return { 'FENCED' }
end
-- Before CLOSED: a last batch whose reply was lost is resent after the run ended, and it was written.
if batch <= last then
  return { 'SEEN', tonumber(r[4]), cancel }
end
if r[1] ~= 'running' then
  return { 'CLOSED', r[1] }
end
if batch ~= last + 1 then
  return { 'GAP', last + 1 }
end
local at, sequence = now_ms(), tonumber(r[5])
local bytes = 0
for i = 2, #events, 3 do
  bytes = bytes + #events[i]
end
local full, wait = no_room(run, #events / 3, bytes, most_events, most_bytes, event_rate, byte_rate, at)
if full then
  return { 'FULL', full }
end
if wait then
  return { 'BUSY', wait }
end
for i = 1, #events, 3 do
  sequence = sequence + 1
  write_event(log, audit, sequence, at, events[i], events[i + 1], events[i + 2])
end
-- The answer is kept beside the number: a cancel request may take the next sequence before this batch is resent.
redis.call('HSET', run, 'sequence', int(sequence), 'batch', batch, 'batch_sequence', int(sequence), 'last_activity_at', int(at))
took_room(run, #events / 3, bytes, at)
mark_grown(timers, id, tonumber(r[5]), sequence, at)
tell(bell, session, session_log, id, tonumber(r[5]) + 1, sequence, at)
return { 'OK', sequence, cancel }
