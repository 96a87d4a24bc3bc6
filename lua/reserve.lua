-- reserve: decides once which run an idempotency key names, before that run exists.
-- keys: idempotency
-- args: id fingerprint ttl:int
-- reply: OK id | REUSED id
local held = redis.call('GET', idempotency)
if held then
  local owner, print = string.match(held, '^(%S+) (%S+)$')
  return { print == fingerprint and 'OK' or 'REUSED', owner }
end
-- The expiry is for a caller that dies before it creates the run; `keep` lifts it once the run exists.
redis.call('SET', idempotency, id .. ' ' .. fingerprint, 'PX', ttl)
return { 'OK', id }
