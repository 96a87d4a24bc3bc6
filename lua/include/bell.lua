-- A hint for followers, never data: losing one costs time only.
local function ring(bell, id)
  redis.call('XADD', bell, 'MAXLEN', '~', 10000, '*', 'run', id)
end
