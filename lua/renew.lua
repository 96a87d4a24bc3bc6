-- renew: prolongs a lease and tells its owner whether the run shall stop.
-- keys: run queue timers
-- args: id group entry consumer fence lease:int
-- reply: OK cancel_version | FENCED | CLOSED state
-- uses: clock int
local r = redis.call('HMGET', run, 'state', 'fence', 'cancel_version')
if r[2] ~= fence then
  return { 'FENCED' }
end
if r[1] ~= 'running' then
  return { 'CLOSED', r[1] }
end
local until_ms = int(now_ms() + lease)
redis.call('HSET', run, 'lease_until', until_ms)
redis.call('ZADD', timers, until_ms, 'lease:' .. id)
-- Resets the entry's idle time in the list of leases, where sweepers look for dead owners.
redis.call('XCLAIM', queue, group, consumer, 0, entry, 'JUSTID')
return { 'OK', tonumber(r[3] or 0) }
