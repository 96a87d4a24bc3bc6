-- Milliseconds since the epoch as RFC 3339 in UTC, as core/times.py writes them. The date follows from the day number by the
-- proleptic Gregorian calendar, counted in years that begin in March, so that a leap day comes last.
local function rfc3339(ms)
  local seconds = math.floor(ms / 1000)
  local days, rest = math.floor(seconds / 86400), seconds % 86400
  local shifted = days + 719468
  local era = math.floor(shifted / 146097)
  local day_of_era = shifted - era * 146097
  local leap_days = math.floor(day_of_era / 1460) - math.floor(day_of_era / 36524) + math.floor(day_of_era / 146096)
  local year_of_era = math.floor((day_of_era - leap_days) / 365)
  local day_of_year = day_of_era - (365 * year_of_era + math.floor(year_of_era / 4) - math.floor(year_of_era / 100))
  local from_march = math.floor((5 * day_of_year + 2) / 153)
  local month = from_march < 10 and from_march + 3 or from_march - 9
  local year = year_of_era + era * 400 + (month <= 2 and 1 or 0)
  local day = day_of_year - math.floor((153 * from_march + 2) / 5) + 1
  return string.format('%04d-%02d-%02dT%02d:%02d:%02d.%03dZ', year, month, day, math.floor(rest / 3600), math.floor(rest / 60) % 60,
    rest % 60, ms % 1000)
end
