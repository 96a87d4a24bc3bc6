-- Whether a new run of a session has to wait for others by the session's policy; BUSY where it is refused, CHANGED where `others` are not
-- all there are.
-- `others` are the records of the runs in `open`, which only names who to ask: whether they go on, they say themselves.
local function held_back(session, open, others)
  local policy, busy = redis.call('HGET', session, 'policy'), false
  if not policy then
    return false
  end
  if #others ~= redis.call('ZCARD', open) then
    return 'CHANGED'
  end
  for _, other in ipairs(others) do
    local r = redis.call('HMGET', other, 'run_id', 'state')
    if not r[1] or not redis.call('ZSCORE', open, r[1]) then
      return 'CHANGED'
    end
    busy = busy or r[2] == 'queued' or r[2] == 'running' or r[2] == 'waiting'
  end
  if busy and policy == 'reject' then
    return 'BUSY'
  end
  return busy
end
