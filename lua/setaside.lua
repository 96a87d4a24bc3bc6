-- setaside: moves a queue entry that names no run out of the way, where an operator finds it.
-- keys: queue poison
-- args: group entry
-- reply: OK | GONE
-- uses: dequeue
local found = redis.call('XRANGE', queue, entry, entry)[1]
if not found then
  redis.call('XACK', queue, group, entry)
  return { 'GONE' }
end
-- Whatever wrote it may have written thousands of fields; `unpack` takes so many only, and an operator needs fewer.
redis.call('XADD', poison, 'MAXLEN', '~', 1000, '*', 'entry', entry, unpack(found[2], 1, math.min(#found[2], 64)))
dequeue(queue, group, entry)
return { 'OK' }
