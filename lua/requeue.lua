-- requeue: gives a delivered entry back at once: nobody will claim it here.
-- keys: run queue wake
-- args: id group agent entry
-- reply: OK | HELD | GONE
-- uses: enqueue dequeue
local r = redis.call('HMGET', run, 'state', 'entry')
if r[1] == 'running' and r[2] == entry then
  return { 'HELD' }
end
-- The run goes on under another entry, also where this call gave it one and is sent again.
dequeue(queue, group, entry)
if r[1] ~= 'queued' or r[2] ~= entry then
  return { 'GONE' }
end
redis.call('HSET', run, 'entry', enqueue(queue, wake, agent, id))
return { 'OK' }
