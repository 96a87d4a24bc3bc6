-- trim: forgets the head of a live log, as far as a stored fold says that later events carry what it held.
-- keys: run log
-- args: through:int
-- reply: OK first | UNCOVERED covered | GONE
-- uses: int
local r = redis.call('HMGET', run, 'state', 'covered', 'log_from', 'sequence')
if not r[1] then
  return { 'GONE' }
end
local covered = tonumber(r[2] or 0)
if through > covered then
  return { 'UNCOVERED', covered }
end
local from = tonumber(r[3] or 1)
-- The newest event stays: who follows the log must find there that it has missed something.
through = math.min(through, tonumber(r[4]) - 1)
if through < from then
  return { 'OK', from }
end
redis.call('XTRIM', log, 'MINID', '=', int(through + 1) .. '-0')
redis.call('HSET', run, 'log_from', int(through + 1))
return { 'OK', through + 1 }
