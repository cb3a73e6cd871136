"""The text that feeds lanes: members begin, are saved, end, and the next ones take their places."""

from odesim.ensembles.lane_rows import AT, Plan, Rows


def run_text(plan: Plan, rows: Rows) -> str:
    """Members FIRST to END - 1: starts in tiles of W, then lanes that are refilled until no member is left."""
    n, w, f = plan.formulas.states, plan.width, plan.formulas
    firsts = sorted(set(f.values.values()))
    ends = [*firsts[1:], f.count]
    values = []
    for k, (first, end) in enumerate(zip(firsts, ends, strict=True)):
        if end > first:
            values.append(f"source, gap = doubles(at[{AT['PARAMS'] + 2 * k}]), at[{AT['PARAMS'] + 2 * k + 1}]")
            values += [f"S[{rows.p[q] * w} + l] = source[i * gap + {q - first}]" for q in range(first, end)]
    member = [
        *(f"S[{row * w} + l] = y0[i * at[{AT['Y0_STEP']}] + {d}]" for d, row in enumerate(rows.y)),
        *values,
    ]
    fill = "\n".join(["@kernel", "def fill(at, S, i, l):", f"    y0 = doubles(at[{AT['Y0']}])", *(f"    {line}" for line in member)])
    start = n + 2
    keep = [f"start[j * {start} + {d}] = S[{row * w} + l]" for d, row in enumerate(rows.f)]
    keep += [f"start[j * {start} + {n}], start[j * {start} + {n + 1}] = S[{rows.h * w} + l], S[{rows.code * w} + l]"]
    take = [f"S[{row * w} + l] = start[j * {start} + {d}]" for d, row in enumerate(rows.f)]
    take += [
        f"S[{rows.h * w} + l], S[{rows.code * w} + l] = start[j * {start} + {n}], start[j * {start} + {n + 1}]",
        f"S[{rows.t * w} + l], S[{rows.error * w} + l] = t0, 1e-4",
        f"S[{rows.retry * w} + l] = S[{rows.steps * w} + l] = S[{rows.rejected * w} + l] = 0.0",
    ]
    out_end = [f"out[i * {n} + {d}] = S[{row * w} + l]" for d, row in enumerate(rows.y)]
    save_now = [f"out[(i * saves + q) * {n} + {d}] = S[{row * w} + l]" for d, row in enumerate(rows.saved)] if plan.saves else []
    saves_begin = (
        [
            "q = 0",
            "if saves > 0 and save[0] == t0:",
            *(f"    out[i * saves * {n} + {d}] = S[{row * w} + l]" for d, row in enumerate(rows.y)),
            "    q = 1",
            "places[l] = q",
            f"S[{rows.next_save * w} + l] = save[q] if q < saves else inf",
        ]
        if plan.saves
        else []
    )
    saving = (
        [
            "while due > 0:",
            "    interpolate(S)",
            "    due = 0",
            f"    for l in range({w}):",
            f"        if members[l] >= 0 and S[{rows.next_save * w} + l] <= S[{rows.done * w} + l]:",
            "            i, q = members[l], places[l]",
            *(f"            {line}" for line in save_now),
            "            places[l] = q + 1",
            f"            S[{rows.next_save * w} + l] = save[q + 1] if q + 1 < saves else inf",
            f"            due += 1 if S[{rows.next_save * w} + l] <= S[{rows.done * w} + l] else 0",
        ]
        if plan.saves
        else []
    )
    put_last = [f"state[i * {n} + {d}] = S[{row * w} + l]" for d, row in enumerate(rows.y)]
    write_end = [] if plan.saves else ["if code == 1:", *(f"    {line}" for line in out_end)]
    lines = [
        "at = ints(table)",
        f"S, start, y_out = doubles(at[{AT['STATE']}]), doubles(at[{AT['START']}]), doubles(at[{AT['OUT']}])",
        f"state = doubles(at[{AT['LAST']}])",
        f"out, save, saves = y_out, doubles(at[{AT['SAVE']}]), at[{AT['SAVES']}]",
        f"status, t_end = ints(at[{AT['STATUS']}]), doubles(at[{AT['T_END']}])",
        f"steps, rejected, stop = ints(at[{AT['STEPS']}]), ints(at[{AT['REJECTED']}]), ints(at[{AT['STOP']}])",
        f"reals, first, end, most = doubles(at[{AT['REALS']}]), at[{AT['FIRST']}], at[{AT['END']}], float(at[{AT['MOST']}])",
        "t0, t1, rtol, atol = reals[0], reals[1], reals[2], reals[3]",
        f"members = ints(at[{AT['STATE']}] + {8 * rows.count * w})",
        f"places = ints(at[{AT['STATE']}] + {8 * (rows.count + 1) * w})",
        f"for tile in range(first, end, {w}):",
        f"    for l in range({w}):",
        "        fill(at, S, min(tile + l, end - 1), l)",
        "    begin(S, t0, t1, rtol, atol)",
        f"    for l in range(min({w}, end - tile)):",
        "        j = tile + l - first",
        *(f"        {line}" for line in keep),
        "following, live = first, 0",
        f"for l in range({w}):",
        "    members[l] = -1",
        f"    S[{rows.code * w} + l] = 9.0",
        "while True:",
        f"    for l in range({w}):",
        f"        code = int(S[{rows.code * w} + l])",
        "        if code != 0:",
        "            i = members[l]",
        "            if i >= 0:",
        "                status[i] = code",
        f"                t_end[i] = S[{rows.t * w} + l]",
        f"                steps[i], rejected[i] = int(S[{rows.steps * w} + l]), int(S[{rows.rejected * w} + l])",
        *(f"                {line}" for line in write_end),
        "                if code != 1:",
        *(f"                    {line}" for line in put_last),
        "                live -= 1",
        "                members[l] = -1",
        "            if following < end and stop[0] == 0:",
        "                i, j = following, following - first",
        "                following += 1",
        "                live += 1",
        "                members[l] = i",
        "                fill(at, S, i, l)",
        *(f"                {line}" for line in take),
        *(f"                {line}" for line in saves_begin),
        f"            elif S[{rows.code * w} + l] == 0.0:",
        f"                S[{rows.code * w} + l] = 9.0",
        "    if live == 0:",
        "        return",
        f"    idle = {w} - live",
        "    ended = idle",
        "    while ended == idle:",
        "        ended, due = step(S, t0, t1, rtol, atol, most)",
        *(f"        {line}" for line in saving),
    ]
    body = "\n".join(["@nb.njit('void(int64)', **options)", "def run(table):", *(f"    {line}" for line in lines)])
    return f"{fill}\n\n\n{body}"
