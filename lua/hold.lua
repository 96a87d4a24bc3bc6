-- hold: a process says how much it has open for a tenant and for one of its subjects, unless that is too much for all processes together.
-- keys: tenant_open open
-- args: process tenant_count:int count:int tenant_most:int most:int lease:int
-- reply: OK | FULL who
-- uses: clock int
-- A field is "count until": what a process that died had is not counted for longer than its lease. A limit of 0 is none.
local at = now_ms()
local function others(key)
  local sum, gone, all = 0, {}, redis.call('HGETALL', key)
  for i = 1, #all, 2 do
    local held, ends = string.match(all[i + 1], '^(%d+) (%d+)$')
    if tonumber(ends) <= at then
      gone[#gone + 1] = all[i]
    elseif all[i] ~= process then
      sum = sum + tonumber(held)
    end
  end
  return sum, gone
end
local function say(key, mine, gone)
  for _, name in ipairs(gone) do
    redis.call('HDEL', key, name)
  end
  if mine == 0 then
    redis.call('HDEL', key, process)
  else
    redis.call('HSET', key, process, int(mine) .. ' ' .. int(at + lease))
    redis.call('PEXPIRE', key, lease)
  end
end
local all, all_gone = others(tenant_open)
local own, own_gone = others(open)
if most > 0 and own + count > most then
  return { 'FULL', 'caller' }
end
if tenant_most > 0 and all + tenant_count > tenant_most then
  return { 'FULL', 'tenant' }
end
say(tenant_open, tenant_count, all_gone)
say(open, count, own_gone)
return { 'OK' }
