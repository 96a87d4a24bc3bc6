-- tidy: forgets a reader that is gone, unless it still has entries: those are leases, and only `reclaim` takes them back.
-- keys: queue
-- args: group consumer idle:int
-- reply: OK | KEPT
if redis.call('EXISTS', queue) == 0 then
  return { 'OK' }
end
for _, flat in ipairs(redis.call('XINFO', 'CONSUMERS', queue, group)) do
  local about = {}
  for i = 1, #flat, 2 do
    about[flat[i]] = flat[i + 1]
  end
  if about.name == consumer and about.pending == 0 and about.idle >= idle then
    redis.call('XGROUP', 'DELCONSUMER', queue, group, consumer)
    return { 'OK' }
  end
end
return { 'KEPT' }
