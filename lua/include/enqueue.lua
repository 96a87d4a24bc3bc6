-- Puts a run into its agent's queue and tells idle workers. Returns the entry that now carries it.
local function enqueue(queue, wake, agent, id)
  -- An empty queue may have been taken away, and nobody reads one without its group.
  if redis.call('EXISTS', queue) == 0 then
    redis.call('XGROUP', 'CREATE', queue, 'workers', '0', 'MKSTREAM')
  end
  local entry = redis.call('XADD', queue, '*', 'run', id)
  redis.call('XADD', wake, 'MAXLEN', '~', 1000, '*', 'agent', agent, 'run', id)
  return entry
end
