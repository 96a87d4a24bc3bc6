-- session: a session's facts and the bounds of its log, at one instant.
-- keys: session session_log open lapses
-- args: most:int
-- reply: OK facts first latest lapsed open | GONE
-- uses: clock int
-- `first` and `latest` are the log's entries at its ends; `lapsed`: events up to there cannot all be replayed any more.
local facts = redis.call('HGETALL', session)
local lapsed, created = 0, false
for i = 1, #facts, 2 do
  created = created or facts[i] == 'created_at'
  lapsed = facts[i] == 'lapsed' and tonumber(facts[i + 1]) or lapsed
end
if not created then
  return { 'GONE' }
end
for _, place in ipairs(redis.call('ZRANGE', lapses, '-inf', int(now_ms()), 'BYSCORE')) do
  lapsed = math.max(lapsed, tonumber(place))
end
return { 'OK', facts, redis.call('XRANGE', session_log, '-', '+', 'COUNT', 1), redis.call('XREVRANGE', session_log, '+', '-', 'COUNT', 1),
  lapsed, redis.call('ZRANGE', open, 0, most - 1) }
