-- intend: the gate before a tool runs: checks lease, cancel request and earlier tries, and records the intention.
-- keys: run log audit effects timers bell session? session_log?
-- args: id fence call again:int most_events:int most_bytes:int requested unresolved record
-- reply: GO sequence | RECEIPT record | FAILED record | UNRESOLVED record sequence | CANCELLED version | FENCED | CLOSED state | FULL what
-- uses: clock int log tell grown size
-- An entry of `effects` is "status fence sequence record"; only the record is anything but words to this script.
local r = redis.call('HMGET', run, 'state', 'fence', 'sequence', 'cancel_version', 'size')
if r[2] ~= fence then
  return { 'FENCED' }
end
local status, owner, known, stored
local held = redis.call('HGET', effects, call)
if held then
  status, owner, known, stored = string.match(held, '^(%S+) (%S+) (%d+) (.*)$')
end
if status == 'receipt' then
  return { 'RECEIPT', stored }
end
if status == 'failed' then
  return { 'FAILED', stored }
end
if r[1] ~= 'running' then
  return { 'CLOSED', r[1] }
end
-- Before CANCELLED: a call whose reply was lost is answered as it was. A stop that came in between came after the intention, and an
-- intention that nobody acts on would be named as an effect that may have happened.
if status == 'intent' and owner == fence then
  return { 'GO', tonumber(known) }
end
if tonumber(r[4] or 0) > 0 then
  return { 'CANCELLED', tonumber(r[4]) }
end
local at, sequence = now_ms(), tonumber(r[3]) + 1
if status and again == 0 then
  -- The owner that recorded the intention died before it could say what became of it: nobody may run it again unasked.
  if status == 'intent' then
    write_event(log, audit, sequence, at, 'tool.unresolved', unresolved)
    redis.call('HSET', effects, call, 'unresolved ' .. owner .. ' ' .. int(sequence) .. ' ' .. stored)
    redis.call('HSET', run, 'sequence', int(sequence), 'last_activity_at', int(at))
    tell(bell, session, session_log, id, sequence, sequence, at)
    known = sequence
  end
  return { 'UNRESOLVED', stored, tonumber(known) }
end
local size, full = grow_size(r[5], 1, #requested, at, most_events, most_bytes, 0, 0)
if full then
  return { 'FULL', full }
end
write_event(log, audit, sequence, at, 'tool.requested', requested)
redis.call('HSET', effects, call, 'intent ' .. fence .. ' ' .. int(sequence) .. ' ' .. record)
redis.call('HSET', run, 'sequence', int(sequence), 'last_activity_at', int(at), 'size', size)
-- With the receipt before it, which was not counted.
mark_grown(timers, id, sequence - 2, sequence, at)
tell(bell, session, session_log, id, sequence, sequence, at)
return { 'GO', sequence }
