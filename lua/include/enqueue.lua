-- Puts a run into its agent's queue and tells idle workers. Returns the entry that now carries it.
local function enqueue(queue, wake, agent, id)
  local entry = redis.call('XADD', queue, '*', 'run', id)
  redis.call('XADD', wake, 'MAXLEN', '~', 1000, '*', 'agent', agent, 'run', id)
  return entry
end
