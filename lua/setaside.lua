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
redis.call('XADD', poison, 'MAXLEN', '~', 1000, '*', 'entry', entry, unpack(found[2]))
dequeue(queue, group, entry)
return { 'OK' }
