-- signal: answers a waiting run, once.
-- keys: run log audit effects queue timers bell wake session? session_log?
-- args: id agent wait input key fingerprint payload value
-- reply: OK sequence | SEEN sequence | REUSED | SHUT | GONE
-- uses: clock int log tell enqueue
local r = redis.call('HMGET', run, 'state', 'wait_id', 'sequence')
if not r[1] then
  return { 'GONE' }
end
local field = 'wait:' .. wait
local held = redis.call('HGET', effects, field)
if held then
  local status, mark, known = string.match(held, '^(%S+) (%S+) (%d+) ')
  if status == 'answered' and key ~= '' and string.sub(mark, 1, #key + 1) == key .. ':' then
    if mark == key .. ':' .. fingerprint then
      return { 'SEEN', tonumber(known) }
    end
    return { 'REUSED' }
  end
end
if r[1] ~= 'waiting' or r[2] ~= wait then
  return { 'SHUT' }
end
local at, sequence = now_ms(), tonumber(r[3]) + 1
write_event(log, audit, sequence, at, 'input.received', payload)
redis.call('HSET', effects, field, 'answered ' .. key .. ':' .. fingerprint .. ' ' .. int(sequence) .. ' ' .. value)
redis.call('HSET', run, 'state', 'queued', 'sequence', int(sequence), 'last_activity_at', int(at), 'resume', input,
  'entry', enqueue(queue, wake, agent, id))
redis.call('HDEL', run, 'wait_id', 'wait_mode', 'wait_until')
redis.call('ZREM', timers, 'wait:' .. id)
tell(bell, session, session_log, id, sequence, sequence, at)
return { 'OK', sequence }
