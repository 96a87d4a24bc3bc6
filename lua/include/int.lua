-- Numbers become text through %d only: `..` would print a 15-digit one as 1.8e+14.
local function int(n)
  return string.format('%d', n)
end
