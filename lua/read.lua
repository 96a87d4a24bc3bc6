-- read: a run's record, what is left of its log, and optionally what a snapshot is folded from, at one instant.
-- keys: run log audit snapshot
-- args: after:int count:int
-- reply: OK record log_first audit_first stored events | GONE
-- `count` 0 leaves the snapshot out; fewer events come when they are large. `after` is the sequence the caller has folded already, 0 for
-- none.
local record = redis.call('HGETALL', run)
if #record == 0 then
  return { 'GONE' }
end
local function first(stream)
  local entry = redis.call('XRANGE', stream, '-', '+', 'COUNT', 1)[1]
  return entry and tonumber(string.match(entry[1], '^%d+')) or 0
end
local log_first, audit_first, stored, events = first(log), first(audit), '', {}
if count > 0 then
  local from = after
  local folded = tonumber(redis.call('HGET', run, 'snapshot_sequence') or 0)
  if folded > from then
    stored, from = redis.call('GET', snapshot) or '', folded
  end
  -- Only what a stored fold covers is ever trimmed, so the log holds everything after `from`. Large events come in several calls: nobody
  -- else is served while this one's answer is put together.
  local size, part = 0
  repeat
    part = redis.call('XRANGE', log, string.format('%d-0', from + 1), '+', 'COUNT', math.min(count - #events, 64))
    for _, entry in ipairs(part) do
      events[#events + 1] = entry
      size = size + #entry[2][6]
    end
    from = #part > 0 and tonumber(string.match(part[#part][1], '^%d+')) or from
  until #part < 64 or #events >= count or size >= 1048576
end
return { 'OK', record, log_first, audit_first, stored, events }
