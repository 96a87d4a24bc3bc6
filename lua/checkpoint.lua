-- checkpoint: stores a fold of the log, and lets an ended run's deltas go once its last fold is safe.
-- keys: run log snapshot timers lapses?
-- args: id sequence:int covered:int floor:int blob place:int
-- reply: OK | STALE sequence | GONE
-- uses: int
-- `place`: where in the session the last event below `floor` is, 0 where there is none.
local r = redis.call('HMGET', run, 'state', 'sequence', 'snapshot_sequence', 'covered', 'finished_at', 'retain_deltas', 'retain_run',
  'retain_events', 'sealed')
if not r[1] then
  redis.call('ZREM', timers, 'seal:' .. id)
  return { 'GONE' }
end
local known = tonumber(r[3] or 0)
local last = r[5] and sequence == tonumber(r[2])
-- Folds of one log are equal, so a lower one has nothing to add; an equal one may be the terminal fold, resent.
if sequence < known or sequence > tonumber(r[2]) then
  return { 'STALE', known }
end
redis.call('SET', snapshot, blob)
redis.call('HSET', run, 'snapshot_sequence', int(sequence), 'covered', int(math.max(covered, tonumber(r[4] or 0))))
if r[5] then
  redis.call('PEXPIREAT', snapshot, int(tonumber(r[5]) + tonumber(r[7])))
end
if last and not r[9] then
  redis.call('HSET', run, 'sealed', 1, 'floor', int(floor))
  local deltas_until = int(tonumber(r[5]) + math.min(tonumber(r[6]), tonumber(r[8])))
  redis.call('PEXPIREAT', log, deltas_until)
  if lapses and place > 0 then
    redis.call('ZADD', lapses, 'LT', deltas_until, int(place))
  end
  redis.call('ZREM', timers, 'seal:' .. id)
end
return { 'OK' }
