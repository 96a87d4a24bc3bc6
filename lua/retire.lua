-- retire: takes away an empty queue. The next run of its agent makes it anew, and its readers ask as before.
-- keys: queue agents
-- args: agent group
-- reply: OK | KEPT
if redis.call('EXISTS', queue) == 1 then
  if redis.call('XLEN', queue) > 0 or redis.call('XPENDING', queue, group)[1] > 0 then
    return { 'KEPT' }
  end
  redis.call('DEL', queue)
end
redis.call('SREM', agents, agent)
return { 'OK' }
