-- Takes an entry out of the queue and of the list of leases. Both are no-ops where it is gone already.
local function dequeue(queue, group, entry)
  if entry and entry ~= '' then
    redis.call('XACK', queue, group, entry)
    redis.call('XDEL', queue, entry)
  end
end
