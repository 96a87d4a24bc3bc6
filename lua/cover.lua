-- cover: writes events that say what a live run's deltas up to `seen` said, if nothing was written since.
-- keys: run log audit bell session? session_log?
-- args: id seen:int events...
-- reply: OK sequence | MOVED sequence | CLOSED state | GONE
-- uses: clock int log tell
-- A repeat whose first reply was lost finds its own events and is told MOVED: whoever folds again sees that it is done.
local r = redis.call('HMGET', run, 'state', 'sequence', 'finished_at')
if not r[1] then
  return { 'GONE' }
end
if r[3] then
  return { 'CLOSED', r[1] }
end
local sequence = tonumber(r[2])
if sequence ~= seen then
  return { 'MOVED', sequence }
end
local at = now_ms()
for i = 1, #events, 3 do
  sequence = sequence + 1
  write_event(log, audit, sequence, at, events[i], events[i + 1], events[i + 2])
end
redis.call('HSET', run, 'sequence', int(sequence), 'last_activity_at', int(at))
tell(bell, session, session_log, id, seen + 1, sequence, at)
return { 'OK', sequence }
