# ruff: noqa: B007, F821
# mypy: ignore-errors
"""What one event sets in one member where nothing else happens: the rules of resets.py for that, operation by operation, to be compiled.

It is text as feed.py is, read by lane_events.py; no one calls it. In numpy these rules take hundreds of passes over arrays of members, half
of the time of members that strike a wall. A member for which they would say more is left as it is, and numpy's rules take it: one that has
several events at a time, that a second function brings near 0, that sets off another event, whose function rests at 0 or is lost in its
rounding, that leaves what a state assumes, that piles up or may do so, or that is near the end of its part.

S holds one member. row.y, row.late: its state and that a moment later; row.new, row.new_late: the same after the reset; row.f: derivatives;
row.g and row.h: of each function, before and after the reset, its value, how far rounding moves it, and how far a moment does.
MARKS: what resets.Resetting keeps of each member.
"""


@njit("void(int64)", **options)
def resets(table):  # of END members; ACTED: what reset_member returns
    at = ints(table)
    order, acted = ints(at.ORDER), ints(at.ACTED)
    for k in range(at.END):
        acted[k] = reset_member(at, order[k])


@unfused
def spacing_of(at, S, x):  # the distance from |x| to the next number, by the bits of x
    S[row.free] = x
    power = ((ints(at.STATE)[row.free] >> 52) & 2047) - 52
    ints(at.STATE)[row.free] = power << 52
    return S[row.free] if power > 0 else nan


@unfused
def look_around(S, t, later, y, late, into):  # the functions; what is returned is 0 if all is finite
    for d, one, two in each(SHAKEN):
        S[row.one + d], S[row.two + d] = S[y + d] * one, S[y + d] * two
    event_values(S, t, y, into)
    event_values(S, t * SHAKEN_TIME[0], row.one, row.shaken)
    event_values(S, t * SHAKEN_TIME[1], row.two, row.shaken + SIZE)
    event_values(S, later, late, row.shaken + 2 * SIZE)
    finite = 0.0
    for s in range(SIZE):
        g = S[into + s]
        off = abs(S[row.shaken + s] - g) + abs(S[row.shaken + SIZE + s] - g)
        moves = abs(S[row.shaken + 2 * SIZE + s] - g)
        S[into + SIZE + s], S[into + 2 * SIZE + s] = off, moves
        finite += (g - g) + (off - off) + (moves - moves)
    return finite


@unfused
def side_of(g, off):
    return 0.0 if abs(g) <= off else 1.0 if g > 0.0 else -1.0


@unfused
def write_found(at, i):  # the events of this round among those of the whole run
    counts, times, components, room = ints(at.FOUND_N), doubles(at.FOUND_T), ints(at.FOUND_I), at.KEPT
    if at.LISTED >= 0:
        listed, into, places = ints(at.LISTED_N), doubles(at.LISTED_T), ints(at.LISTED_I)
        for e in range(NAMES):
            for k in range(counts[i * NAMES + e]):
                place = listed[i * NAMES + e]
                listed[i * NAMES + e] = place + 1
                if place < at.LISTED:
                    into[(i * NAMES + e) * at.LISTED + place] = times[(i * NAMES + e) * room + k]
                    places[(i * NAMES + e) * at.LISTED + place] = components[(i * NAMES + e) * room + k]


@unfused
def reset_member(at, i):  # 1 where an event has acted, 2 where a run has ended without one, 0 where numpy's rules are needed
    S, reals = doubles(at.STATE), doubles(at.REALS)
    t, t0, t1 = doubles(at.T_END)[i], reals.T0, reals.T1
    steps, rejected, status = ints(at.STEPS), ints(at.REJECTED), ints(at.STATUS)
    final = not TIMED and status[i] == OK and t >= t1
    if not final and (status[i] != EVENT or steps[i] + rejected[i] >= at.MOST):
        return 0
    space, least = spacing_of(at, S, t), spacing_of(at, S, t1 - t0)
    nearby = max(TOGETHER[0] * (t - t0) + TOGETHER[1] * space, ROUNDINGS * (t - t0))
    if not (final or doubles(at.PART_END)[i] - t > nearby):
        return 0
    moment = max(nearby, max(least, space))

    # which event
    counts, room, hits, column = ints(at.FOUND_N), at.KEPT, 0, -1
    times, components = doubles(at.FOUND_T), ints(at.FOUND_I)
    for e, first in each(FIRST):
        for k in range(counts[i * NAMES + e]):
            if times[(i * NAMES + e) * room + k] >= t - nearby:
                hits += 1
                column = first + components[(i * NAMES + e) * room + k]
    j = -1
    for c, s in each(SETTING):
        if column == c:
            j = s
    if hits != (0 if final else 1) or (j < 0 and not final):
        return 0

    # where no other function is near 0
    for k, first, size in each(OWN):
        source, gap = doubles(at[k]), at[k + 1]
        for d in range(size):
            S[first + d] = source[i * gap + d]
    state = doubles(at.LAST)
    for d in range(N):
        S[row.y + d] = state[i * N + d]
    derivatives(S, t, row.y, row.f)
    for d in range(N):
        S[row.late + d] = S[row.y + d] + moment * S[row.f + d]
    if look_around(S, t, t + moment, row.y, row.late, row.g) != 0.0:
        return 0
    event_rates(S, t, row.y, row.f, row.rate)
    mark = doubles(at.MARKS + 8 * i * MARKED)
    for s, e, c, a, until, zeros, size, d in each(HELD):
        g, off, zero = S[row.g + s], S[row.g + SIZE + s], mark[ZEROS + c]
        close = abs(g) <= off + zero + moment * abs(S[row.rate + s])
        if s == j:
            if doubles(at[a])[i * size + d] == 0.0:  # it may have stayed 0
                return 0
            zero = max(zero, abs(g))  # so far off was the search
        elif close:
            return 0
        S[row.zero + s] = zero
        S[row.before + s] = side_of(g, off + zero + S[row.g + 2 * SIZE + s])
    if final:
        write_found(at, i)
        return 2

    # what it sets, here and a moment later
    for d in range(N):
        S[row.new + d], S[row.new_late + d] = S[row.y + d], S[row.late + d]
    set_states(S, t, row.y, row.new, column)
    set_states(S, t + moment, row.late, row.new_late, column)
    for d in range(N):
        if S[row.new + d] - S[row.new + d] != 0.0:
            return 0
    for d, sign in each(ASSUMED):
        if not sign * S[row.new + d] > 0.0:
            return 0
    if look_around(S, t, t + moment, row.new, row.new_late, row.h) != 0.0:
        return 0
    derivatives(S, t, row.new, row.f)
    event_rates(S, t, row.new, row.f, row.new_rate)
    for e in range(NAMES):
        S[row.close + e] = 0.0
    for s, e in each(EVENT_OF):
        g, off = S[row.h + s], S[row.h + SIZE + s] + S[row.zero + s] + S[row.h + 2 * SIZE + s]
        if s != j and side_of(g, off) != S[row.before + s]:
            return 0
        rate = abs(S[row.new_rate + s])
        S[row.held + s] = 1.0 if abs(g) <= off + moment * rate else 0.0
        S[row.close + e] += S[row.held + s]
        if S[row.held + s] == 1.0 and (rate == 0.0 or BITS * off / rate > moment):
            return 0
    step = AHEAD * (t1 - t0)
    if not STRAIGHT:
        for d in range(N):
            S[row.late + d] = S[row.new + d] + step * S[row.f + d]
        if look_around(S, t + step, t + step, row.late, row.late, row.ahead) != 0.0:
            return 0
    for s, e in each(EVENT_OF):
        rate = S[row.new_rate + s]
        if S[row.close + e] > 0.0:
            if not abs(rate) > ROUNDED * abs(S[row.rate + s]):
                return 0
            if not STRAIGHT:
                off = S[row.ahead + SIZE + s]
                if abs(S[row.ahead + s]) <= off and abs(rate) * step > 4.0 * off:
                    return 0

    # whether it piles up
    rate, short = abs(S[row.rate + j]), max(MOMENT[0] * (t - t0) + MOMENT[1] * space, FEW * moment)
    if rate != 0.0:
        short = max(short, FEW * (BITS * S[row.h + SIZE + j]) / rate)
    again = 1.0 if t - mark[LAST + column] > short else mark[REPEATS + column] + 1.0
    if again == FEW or mark[COUNTS + column] + 1.0 == mark[DUE + column]:
        return 0

    # nothing was written before
    mark[0], mark[LAST + column], mark[REPEATS + column], mark[COUNTS + column] = t, t, again, mark[COUNTS + column] + 1.0
    for s, e, c, a, until, zeros, size, d in each(HELD):
        g, rate, held = S[row.h + s], S[row.new_rate + s], S[row.held + s] == 1.0
        new = TINY if rate > 0.0 else -TINY
        if S[row.close + e] > 0.0:
            doubles(at[a])[i * size + d] = new
        doubles(at[until])[i * size + d] = t + moment if held else NEVER
        doubles(at[zeros])[i * size + d] = g if held and g * new < 0.0 and abs(g) > moment * abs(rate) else 0.0
        mark[ZEROS + c] = abs(g) if held else 0.0
    for d in range(N):
        state[i * N + d] = S[row.new + d]
    if SAVES:  # a time that is known is off by more than rounding
        saved, save, out = ints(at.PLACES)[i], doubles(at.SAVE), doubles(at.OUT)
        while saved > 0 and save[saved - 1] >= t - nearby:
            saved -= 1
            for d in range(N):
                out[(i * at.SAVES + saved) * N + d] = S[row.new + d]
    write_found(at, i)
    return 1
