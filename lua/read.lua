-- read: a run's record, what is left of its log, and optionally what a snapshot is folded from, at one instant.
-- keys: run log audit snapshot
-- args: after:int count:int
-- reply: OK record log_first audit_first stored events | GONE
-- `count` 0 leaves the snapshot out. `after` is the sequence the caller has folded already, 0 for none.
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
  -- Only what a stored fold covers is ever trimmed, so the log holds everything after `from`.
  events = redis.call('XRANGE', log, string.format('%d-0', from + 1), '+', 'COUNT', count)
end
return { 'OK', record, log_first, audit_first, stored, events }
