-- charge: counts a run that is about to be created as one that is not finished, once however often it is asked; refuses what is too much.
-- keys: tenant_rates rates tenant_runs runs agents
-- args: member agent tenant_rate:int rate:int tenant_most:int most:int agents_most:int keep:int
-- reply: OK | RATE who wait | RUNS who | AGENTS
-- uses: clock int rate
-- A limit of 0 is none. `keep` is how long the lists are kept without news, ms.
if redis.call('ZSCORE', runs, member) then
  return { 'OK' }
end
local at = now_ms()
local minute = math.floor(at / 60000)
local all, mine = used(tenant_rates, 'runs', minute), used(rates, 'runs', minute)
if (rate > 0 and mine >= rate) or (tenant_rate > 0 and all >= tenant_rate) then
  return { 'RATE', (rate > 0 and mine >= rate) and 'caller' or 'tenant', (minute + 1) * 60000 - at }
end
if most > 0 and redis.call('ZCARD', runs) >= most then
  return { 'RUNS', 'caller' }
end
if tenant_most > 0 and redis.call('ZCARD', tenant_runs) >= tenant_most then
  return { 'RUNS', 'tenant' }
end
-- A name counts for an hour after it was used last.
local names = redis.call('ZCOUNT', agents, int(at - 3600000), '+inf')
if agents_most > 0 and names >= agents_most and not redis.call('ZSCORE', agents, agent) then
  return { 'AGENTS' }
end
use(tenant_rates, 'runs', minute, all)
use(rates, 'runs', minute, mine)
redis.call('ZREMRANGEBYSCORE', agents, '-inf', int(at - 3600000))
redis.call('ZADD', agents, int(at), agent)
redis.call('PEXPIRE', agents, 3600000)
redis.call('ZADD', tenant_runs, int(at), member)
redis.call('ZADD', runs, int(at), member)
redis.call('PEXPIRE', tenant_runs, keep)
redis.call('PEXPIRE', runs, keep)
return { 'OK' }
