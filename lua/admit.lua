-- admit: lets a run that was held start, once no run before it in its session goes on.
-- keys: run queue wake open
-- args: id agent
-- reply: OK | EARLY | GONE
-- uses: enqueue
local r = redis.call('HMGET', run, 'state', 'held')
if r[1] ~= 'queued' or not r[2] then
  return { 'GONE' }
end
if redis.call('ZRANK', open, id) ~= 0 then
  return { 'EARLY' }
end
redis.call('HSET', run, 'entry', enqueue(queue, wake, agent, id))
redis.call('HDEL', run, 'held')
return { 'OK' }
