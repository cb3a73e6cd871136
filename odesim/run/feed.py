# ruff: noqa: B007, F821, F841, RUF059
# mypy: ignore-errors
"""What leads the steps of members, written once: start, events, saved times, end, and the next member in a free lane.

It is text for lanes written out, lanes with loops and threads of a GPU; lane_feed.py reads it; no one calls it. Capitals are known then.
row.t is the place of a number of lane 0 in S, that of component d of a state is row.y + d * W; at.SAVE and reals.T0 are columns of tables
of lane_plan.py. `each` is written out where its length is known. A function of nothing stands for its lines, one of an expression for that.

Constants that switch. THREAD: one member, whose places are constants. LOOPS: lanes with loops. SAVES, EVENTS, TERMINAL: whether there are
any. PARTS: each member has a span of its own, and was saved before it. FIXED, STIFF: which steps. LOOKS: they may be left to another
method. MARCHES: many are taken without a look. JOINED: a step samples the events itself. QUEUED: components wait until zeros of several
steps are computed together. CALLED: a search is called by its address. DISCRETE: nothing happens within a step.
BY_STATE: each state has its own absolute tolerance. NOISE: there is noise. PAIRS: that of two steps is drawn together.
"""

# ---- places in results


def owner():  # whose lane it is
    return i if THREAD else members[l]


def which(k):  # of those that are meant
    return order[k] if PARTS else k


def begins():
    return S[row.start + l] if PARTS else t0


def put_first():
    for d in each(N):
        out[d * count + i if THREAD else i * saves * N + d] = S[row.y + d * W + l]


def put_end():
    for d in each(N):
        state[d * count + i if THREAD else i * N + d] = S[row.y + d * W + l]


# ---- a member begins


@kernel
def fill(at, S, i, l):
    y0, reals = doubles(at.Y0), doubles(at.REALS)
    if LOOPS:
        n, clock = at.STATES & MASK, at.CLOCK
    put_member()


def put_member():
    for d in each(N):
        S[row.y + d * W + l] = y0[i * at.Y0_STEP + d]
    if LOOPS:
        source, gap = doubles(at.PARAMS), at.PARAMS_GAP
        for first in each(READ):  # own parameters lie beside every state at which the right-hand side is evaluated
            for d in range(gap):
                S[first + (n + d) * W + l] = source[i * gap + d]
    for k, first, size in each(OWN):
        source, gap = doubles(at[k]), at[k + 1]
        for d in each(size):
            S[first + d * W + l] = source[i * gap + d]
    if PARTS:
        S[row.start + l] = doubles(at.PART_START)[i]
        S[row.end + l] = doubles(at.PART_END)[i]
    if BY_STATE:
        for d in each(N):
            S[row.atol + d * W + l] = doubles(at.ATOL)[d]
    if LIMITED:
        S[row.longest + l] = reals.LONGEST
    if GIVEN_FIRST:
        S[row.h + l] = reals.H0
    if NOISE:
        noise = doubles(at.NOISE)
        for k in each(3):
            S[row.key0 + k * W + l] = noise[k]
        S[row.member + l] = noise[3 + i]
    for place in each(BEFORE):
        S[place + l] = nan
    if SUMS:
        sums = doubles(at.SUMS)
        for d in each(SUMS):
            S[row.sums + d * W + l] = sums[i * at.SUMS_STEP + d]


def begun():
    for place, value in each(BEGUN):
        S[place + l] = value
    if not LOOPS:
        S[row.t + l], S[row.past + l], S[row.retry + l] = begins(), OLD_ERROR, 0.0
        S[row.steps + l], S[row.rejected + l] = float(steps[i]) if PARTS else 0.0, float(rejected[i]) if PARTS else 0.0
    if LOOKS:
        S[row.most + l] = float(min(at.PILOT, at.MOST))


def first_save():
    if SAVES and LOOPS:
        first_save_lane(S, l, i, out, save, saves, *GIVEN)
    if SAVES and not LOOPS:
        q = done_before[i] if PARTS else 0
        if (not PARTS or q == 0) and saves > 0 and save[0] == begins():
            put_first()
            q = 1
        count_saved()
        S[row.due + l] = save[q] if q < saves else inf


def count_saved():
    if THREAD:
        saved = q
    else:
        places[l] = q


def save_due():
    if LOOPS:
        if due > 0:
            for l in range(W):
                if members[l] >= 0 and S[row.accept + l] != 0.0 and S[row.due + l] <= S[row.new + l]:
                    save_lane(S, l, members[l], out, save, saves, *GIVEN)
        accept(S, *GIVEN)
    elif BY_POWERS:
        if due > 0:
            powers(S)
            for l in range(W):
                if members[l] >= 0 and S[row.due + l] <= S[row.until + l]:
                    places[l] = save_lane(S, l, members[l], places[l], out, save, saves)
    else:
        while due > 0:
            interpolate(S)
            due = 0
            for l in range(W):
                if owner() >= 0 and S[row.due + l] <= S[row.until + l]:
                    i, q = owner(), saved if THREAD else places[l]
                    for d in each(N):
                        out[(q * N + d) * count + i if THREAD else (i * saves + q) * N + d] = S[row.saved + d * W + l]
                    q += 1
                    count_saved()
                    S[row.due + l] = save[q] if q < saves else inf
                    due += 1 if S[row.due + l] <= S[row.until + l] else 0


# ---- events


# functions, for numba is lost among many branches
@inlined
def lower(a, b):
    return a if a < b else b


@inlined
def higher(a, b):
    return a if a > b else b


def arrays_of_events():
    facts, zeros, kept = ints(at.FACTS), zeros if THREAD else doubles(at.FOUND), at.KEPT
    times, places_of, counts = doubles(at.FOUND_T), ints(at.FOUND_I), ints(at.FOUND_N)


def search_events():
    if QUEUED and hits > 0:
        for l in range(W):
            if S[row.marks + l] != 0.0:
                marks = int(S[row.marks + l])
                for i in range(SIZE):
                    if (marks >> min(i, MARKS)) & 1 != 0:
                        push(S, l, i, waiting, float(owner()))
                        waiting += 1
                        if waiting == W:
                            flush(at, S, waiting, facts, zeros, kept, times, places_of, counts)
                            waiting = 0
    if not QUEUED and (hits if JOINED else watch(S)) > 0:
        for l in range(W):
            if S[row.marks + l] != 0.0 and owner() >= 0:
                if THREAD:  # rare: it reads T, which holds all of S, so that no number of S needs a register meanwhile
                    arrays_of_events()
                    copy_all(T, S)
                before, new = S[row.before + l], S[row.done + l]
                search_one()
                if THREAD:
                    copy_all(S, T)
                if KEEPS:
                    keep(zeros, hits, last, facts, SIZE, owner() * NAMES, kept, times, places_of, counts)
                if TERMINAL and theta >= 0.0:
                    ended += 1 if S[row.code + l] == RUNNING else 0
                    S[row.code + l], S[row.until + l], S[row.theta + l] = float(EVENT), last, theta


def search_one():
    if DISCRETE:
        hits, last, theta = passed(sample, T if THREAD else S, l, facts, SIZE, new, zeros, 0, ROOM)
    elif CALLED:
        call(at.SEARCH, (at.SEARCHED, l, 0, int(S[row.marks + l]), before, S[row.step + l], new))
        answer = doubles(at.ANSWER)
        hits, last, theta = int(answer[0]), answer[1], answer[2]
    else:
        hits, last, theta = search(
            sample, probe, T if THREAD else S, l, facts, SIZE, PIECES, before, S[row.step + l], new, zeros, 0, ROOM, int(S[row.marks + l])
        )


@kernel
def sample(S, l, k, i):  # component i at the end of piece k of the last step of lane l
    return S[row.samples + ((k + 1) * SIZE + i) * W + l]


@kernel
def push(S, l, i, q, member):
    for k in range(-1, PIECES + 1):
        S[row.queue + (1 + k) * W + q] = sample(S, l, k, i)
    S[row.origin + q], S[row.length + q], S[row.arrival + q] = S[row.before + l], S[row.step + l], S[row.done + l]
    S[row.owner + q], S[row.place + q] = member, float(i)


@kernel
def flush(at, S, waiting, facts, zeros, kept, times, places_of, counts):
    roots(S)
    answer = doubles(at.ANSWER)
    for q in range(waiting):
        side, i, new, count = S[row.side + q], int(S[row.place + q]), S[row.arrival + q], 0
        if side == MANY:
            call(at.SEARCH, (at.SEARCHED, q, i, S[row.origin + q], S[row.length + q], new))
            count = int(answer[0])
        elif side != 0.0 and side * facts[i] >= 0.0:
            zeros[0], zeros[1], count = S[row.zero + q], float(i), 1
        keep(zeros, count, new, facts, SIZE, int(S[row.owner + q]) * NAMES, kept, times, places_of, counts)


# ---- a member ends


def look_at():  # explicit steps may be held by stability
    if LOOPS:
        look_lane(S, l, i, *GIVEN)
    else:
        look(S, l, t1, rtol, atol, most, float(at.PILOT))


def ends():
    if TERMINAL and code == EVENT:
        if not SAVES and S[row.until + l] >= t1:
            put_first()
        settle(S, l)
    if STIFF and not THREAD and at.SEEN != 0 and S[row.steps + l] > looked:
        show()
    if not FIXED and code == STEP_TOO_SMALL:
        code = judged(S, l, t0, rtol, atol, N)
    status[i], t_end[i] = code, S[row.t + l]
    steps[i], rejected[i] = int(S[row.steps + l]), int(S[row.rejected + l])
    if PARTS and SAVES:
        done_before[i] = saved if THREAD else places[l]
    if code == OK:
        if not SAVES:
            put_first()
        if TERMINAL or PARTS:
            put_end()
    else:
        put_end()


def show():
    put_end()
    call(at.SEEN, (0, S[row.t + l], at.LAST, 0))


@kernel
def judged(S, l, t0, rtol, atol, n):  # whether a step of lane l that became too small means a blow-up, by the rule of stepper/report.py
    most, value, slope = -1.0, 0.0, 0.0
    if THREAD:
        for d in each(N):
            most_growing()
    else:
        for d in range(n):
            most_growing()
    passed = max(abs(S[row.t + l]), S[row.t + l] - begins())
    return BLOW_UP if runs_away(value, slope, passed) else STEP_TOO_SMALL


def most_growing():
    v, f = S[row.y + d * W + l], S[row.f + d * W + l]
    q = abs(f) / ((S[row.atol + d * W + l] if BY_STATE else atol) + rtol * abs(v))
    if q > most:
        most, value, slope = q, v, f


# ---- lanes


@kernel
def right(at, state, stage):  # of lanes with loops
    call(at.RIGHT, (at.TABLE, 0.0, at.STATE + 8 * state, at.STATE + 8 * stage, at.NOTHING, at.NOTHING, 0, 0, 0))


@kernel
def free(S, t0, t1, fixed, total, most):  # the steps until one must be looked at
    # the last step may be shorter, and a member that ends at its start has none; a `return` from the loop would cost 35 % (tsit5, Lorenz)
    ahead = UNSEEN
    for l in range(W):
        if S[row.code + l] != IDLE:
            left = (total if total < most else most) - 1.0 - S[row.steps + l] if S[row.code + l] == RUNNING else 0.0
            if SAVES and S[row.due + l] < inf:
                k = float(int((S[row.due + l] - S[row.t + l]) / fixed))
                k = k if moment(S[row.steps + l] + k, t0, t1, fixed, total) < S[row.due + l] else k - 1.0
                left = k if k < left else left
            if PAIRS:  # one begins after an even number of steps; lanes of which some are odd take steps alone
                left = left if whole(S[row.steps + l]) & 1 == 0 else 0.0
            ahead = left if left < ahead else ahead
    return int(ahead) & -2 if PAIRS else int(ahead)


@njit("void(int64)", **options)
def run(table):  # members FIRST to END - 1, started in tiles of W, then lanes refilled until no member is left
    at = ints(table)
    S, start, out, state = doubles(at.STATE), doubles(at.START), doubles(at.OUT), doubles(at.LAST)
    save, saves, reals = doubles(at.SAVE), at.SAVES, doubles(at.REALS)
    status, t_end, stop = ints(at.STATUS), doubles(at.T_END), ints(at.STOP)
    steps, rejected = ints(at.STEPS), ints(at.REJECTED)
    first, end, most = at.FIRST, at.END, float(at.MOST)
    t0, t1, rtol, atol = reals.T0, reals.T1, reals.RTOL, reals.ATOL
    if LOOPS:
        n, clock = at.STATES & MASK, at.CLOCK
        longest, h0, allowed, pilot = reals.LONGEST, reals.H0, float(at.MOST), float(at.PILOT)
    if FIXED:
        fixed, rest, total, careful = reals.FIXED, reals.REST, reals.TOTAL, 0
    if EVENTS:
        arrays_of_events()
    if PARTS:
        order, done_before = ints(at.ORDER), ints(at.PLACES)
    members, places = ints(at.STATE + 8 * row.count), ints(at.STATE + 8 * (row.count + W))
    for tile in range(first, end, W):
        for l in range(W):
            fill(at, S, which(min(tile + l, end - 1)), l)
        begin(S, *GIVEN)
        for l in range(min(W, end - tile)):
            j = tile + l - first
            for k, place in each(KNOWN):
                start[j * STARTED + k] = S[place + l]
            if LOOPS:
                for d in range(n):
                    start[j * STARTED + 2 + d] = S[row.f + d * W + l]
    following, live, looked, waiting = first, 0, 0.0, 0
    for l in range(W):
        members[l] = -1
        S[row.code + l] = float(IDLE)
    while True:
        for l in range(W):
            code = int(S[row.code + l])
            if code != RUNNING:
                i = members[l]
                if i >= 0:
                    if LOOKS and code == MAX_STEPS:
                        look_at()
                        code = int(S[row.code + l])
                        if code == RUNNING:  # a lane whose member goes on stays as it is
                            continue
                    ends()
                    live -= 1
                    members[l] = -1
                    S[row.code + l] = float(IDLE)
                if following < end and stop[0] == 0:
                    i, j = which(following), following - first
                    following += 1
                    live += 1
                    members[l] = i
                    fill(at, S, i, l)
                    for k, place in each(KNOWN):
                        S[place + l] = start[j * STARTED + k]
                    if LOOPS:
                        for d in range(n):
                            S[row.f + d * W + l] = start[j * STARTED + 2 + d]
                    begun()
                    first_save()
        if live == 0 or stop[0] > 1:
            if QUEUED:
                flush(at, S, waiting, facts, zeros, kept, times, places_of, counts)
            return
        idle = W - live
        ended = idle
        while ended == idle and (not STIFF or stop[0] < 2):  # explicit steps are short
            if MARCHES:
                if careful > 0:
                    careful -= 1
                else:
                    ahead = free(S, t0, t1, fixed, total, most)
                    if ahead > 0:
                        if march(S, t0, t1, fixed, total, ahead) == 0:
                            continue
                        careful = ahead
            step_all()
            if STIFF and at.SEEN != 0:  # a loop with a call in it keeps no constants in registers
                break
        # a member that is alone stands in the first lane
        if STIFF and at.SEEN != 0 and S[row.code] == RUNNING and S[row.steps] > looked:
            looked, l, i = S[row.steps], 0, 0
            show()


@njit("void(int64)", **options)
def rates(table):  # the derivatives of members in states LAST at times T_END, one after another, which the rules of events read
    at = ints(table)
    S, out, reals, order, end = doubles(at.STATE), doubles(at.OUT), doubles(at.REALS), ints(at.ORDER), at.END
    state, t_end = doubles(at.LAST), doubles(at.T_END)
    t0, t1, rtol, atol = reals.T0, reals.T1, reals.RTOL, reals.ATOL
    for tile in range(0, end, W):
        for l in range(W):
            k = min(tile + l, end - 1)
            fill(at, S, order[k], l)
            S[row.start + l] = t_end[k]
            for d in each(N):
                S[row.y + d * W + l] = state[k * N + d]
        begin(S, *GIVEN)
        for l in range(min(W, end - tile)):
            for d in each(N):
                out[(tile + l) * N + d] = S[row.f + d * W + l]


def step_all():
    if JOINED:
        ended, due, hits = step(S, *STEPPED)
    else:
        ended, due = step(S, *STEPPED)
    if EVENTS:
        search_events()
    if SAVES:
        save_due()


# ---- threads of a GPU


@kernel
def member(at, S, T, zeros, i):  # integrates member i. T: where zeros of events are searched, a copy of S
    l, saved, count = 0, 0, at.COUNT if PARTS else at.END
    y0, reals = doubles(at.Y0), doubles(at.REALS)
    if PARTS:
        done_before, steps, rejected = ints(at.PLACES), ints(at.STEPS), ints(at.REJECTED)
    t0, t1, rtol, atol, most = reals.T0, reals.T1, reals.RTOL, reals.ATOL, float(at.MOST)
    if SAVES:
        out, save, saves = doubles(at.OUT), doubles(at.SAVE), at.SAVES
    if FIXED:
        fixed, rest, total, careful = reals.FIXED, reals.REST, reals.TOTAL, 0
    put_member()
    begin(S, *GIVEN)
    begun()
    first_save()
    trials = 0
    while S[row.code + l] == RUNNING:
        trials += 1
        if trials % LOOK == 0 and asked(at.STOP) != 0:
            return
        step_all()
        if LOOKS and S[row.code + l] == MAX_STEPS:
            look_at()
    code = int(S[row.code + l])
    out, state, status, t_end = doubles(at.OUT), doubles(at.LAST), ints(at.STATUS), doubles(at.T_END)
    steps, rejected = ints(at.STEPS), ints(at.REJECTED)
    ends()
