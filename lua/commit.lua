-- commit: records what became of a tool call. A cancel request does not stop it: what happened is written down.
-- keys: run log audit effects bell session? session_log?
-- args: id fence call status kind payload record mutating:int
-- reply: OK sequence cancel_version | SEEN sequence cancel_version | FENCED | CLOSED state | MISSING
-- uses: clock int log tell size
local r = redis.call('HMGET', run, 'state', 'fence', 'sequence', 'cancel_version', 'size')
local cancel = tonumber(r[4] or 0)
if r[2] ~= fence then
  return { 'FENCED' }
end
local held = redis.call('HGET', effects, call)
if not held then
  return { 'MISSING' }
end
local before, known = string.match(held, '^(%S+) %S+ (%d+) ')
if before == 'receipt' or before == 'failed' or (before == 'unresolved' and status == 'unresolved') then
  return { 'SEEN', tonumber(known), cancel }
end
if r[1] ~= 'running' then
  return { 'CLOSED', r[1] }
end
local at, sequence = now_ms(), tonumber(r[3]) + 1
write_event(log, audit, sequence, at, kind, payload)
-- Counted, never refused.
local size = grow_size(r[5], 1, #payload, at, 0, 0, 0, 0)
redis.call('HSET', effects, call, status .. ' ' .. fence .. ' ' .. int(sequence) .. ' ' .. record)
redis.call('HSET', run, 'sequence', int(sequence), 'last_activity_at', int(at), 'size', size)
if status == 'receipt' and mutating == 1 then
  redis.call('HINCRBY', run, 'receipts', 1)
end
tell(bell, session, session_log, id, sequence, sequence, at)
return { 'OK', sequence, cancel }
