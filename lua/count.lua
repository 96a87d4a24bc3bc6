-- count: something that is limited by the minute is done once more, unless that is too often.
-- keys: tenant_rates rates
-- args: kind tenant_rate:int rate:int
-- reply: OK | RATE who wait
-- uses: clock rate
local at = now_ms()
local minute = math.floor(at / 60000)
local all, mine = used(tenant_rates, kind, minute), used(rates, kind, minute)
if (rate > 0 and mine >= rate) or (tenant_rate > 0 and all >= tenant_rate) then
  return { 'RATE', (rate > 0 and mine >= rate) and 'caller' or 'tenant', (minute + 1) * 60000 - at }
end
use(tenant_rates, kind, minute, all)
use(rates, kind, minute, mine)
return { 'OK' }
