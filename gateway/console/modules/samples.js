// The last minutes of a few numbers of the service, for the sparklines. No screen, no clock of its own.

// About a minute.
const SAMPLES_MAX = 60;

export class Samples {
  constructor() {
    this._series = new Map();
    this._turnsEnded = null;
  }

  /** The values of a series, oldest first. */
  of(name) {
    return this._series.get(name) ?? [];
  }

  take(status, workers) {
    if (!status) return;
    this._put("busy", status.busy ?? 0);
    this._put("waiting", (status.waiting ?? 0) + (status.queued ?? 0));
    this._put("lag", status.lag_ms ?? 0);
    // A journal that cannot be read has no counts.
    const ended = status.turns_ended ?? this._turnsEnded;
    if (this._turnsEnded !== null) this._put("ended", Math.max(0, ended - this._turnsEnded));
    this._turnsEnded = ended;
    this._put("memory", sum(workers, "memory_bytes"));
    this._put("cpu", sum(workers, "cpu_percent"));
  }

  _put(name, value) {
    const series = [...this.of(name), Number(value) || 0];
    this._series.set(name, series.slice(-SAMPLES_MAX));
  }
}

function sum(rows, key) {
  return (rows ?? []).reduce((total, row) => total + (row[key] ?? 0), 0);
}

/** A polyline of an SVG, from left to right; the newest value is at the right edge. */
export function linePoints(values, width, height) {
  const most = Math.max(...values, 1e-9);
  const step = width / (SAMPLES_MAX - 1);
  const begin = width - step * (values.length - 1);
  return values
    .map(
      (value, index) =>
        `${(begin + index * step).toFixed(1)},${(height - 1 - (value / most) * (height - 2)).toFixed(1)}`,
    )
    .join(" ");
}
