-- keep: makes an idempotency key live exactly as long as its run's record.
-- keys: idempotency
-- args: id fingerprint expires:int
-- reply: OK | OTHER
-- It also heals a key whose reservation expired while its run was being created. `expires` 0: the run has not ended.
local held = redis.call('GET', idempotency)
local mine = id .. ' ' .. fingerprint
if held and held ~= mine then
  return { 'OTHER' }
end
if expires == 0 then
  redis.call('SET', idempotency, mine)
else
  redis.call('SET', idempotency, mine, 'PXAT', expires)
end
return { 'OK' }
