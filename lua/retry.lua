-- retry: puts a run whose pause after a lost worker is over back into its queue.
-- keys: run queue timers wake
-- args: id agent
-- reply: OK | EARLY | GONE
-- uses: clock enqueue
local due = redis.call('ZSCORE', timers, 'retry:' .. id)
if due and tonumber(due) > now_ms() then
  return { 'EARLY' }
end
local r = redis.call('HMGET', run, 'state', 'entry')
if not due or r[1] ~= 'queued' or (r[2] and r[2] ~= '') then
  redis.call('ZREM', timers, 'retry:' .. id)
  return { 'GONE' }
end
redis.call('HSET', run, 'entry', enqueue(queue, wake, agent, id))
redis.call('ZREM', timers, 'retry:' .. id)
return { 'OK' }
