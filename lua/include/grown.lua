-- uses: int
-- A log that has grown by some more hundred events may be shortened: the next sweep looks.
local function mark_grown(timers, id, before, sequence, at)
  if math.floor(math.max(before, 0) / 256) ~= math.floor(sequence / 256) then
    redis.call('ZADD', timers, 'NX', int(at), 'trim:' .. id)
  end
end
