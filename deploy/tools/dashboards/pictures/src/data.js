// Queries as Grafana would send them, and their answers as Grafana's data frames.
import { dateTime, toDataFrame, FieldType } from '@grafana/data';

const seconds = (s) => {
  const [, n, unit] = /^(\d+)(ms|s|m|h|d)$/.exec(s);
  return Number(n) * { ms: 0.001, s: 1, m: 60, h: 3600, d: 86400 }[unit];
};

// Steps that Grafana rounds to, in seconds.
const nice = [1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

export class Source {
  constructor({ prometheus, from, to, scrape }) {
    Object.assign(this, { prometheus, from, to, scrape });
    this.timeRange = {
      from: dateTime(from * 1000), to: dateTime(to * 1000), raw: { from: dateTime(from * 1000), to: dateTime(to * 1000) },
    };
  }

  async get(path, params) {
    const response = await fetch(`${this.prometheus}/api/v1/${path}?${new URLSearchParams(params)}`);
    const body = await response.json();
    if (body.status !== 'success') throw new Error(`${body.error}: ${params.query}`);
    return body.data;
  }

  // variables resolves those of a dashboard: what is chosen, else what the dashboard has selected, else the first value.
  async variables(dashboard, chosen) {
    const values = {};
    for (const v of dashboard.templating.list) {
      if (v.type === 'datasource') continue;
      if (v.type === 'custom') {
        values[v.name] = chosen[v.name] ?? v.current.value;
      } else {
        const [, match, label] = /^label_values\((.*), (\w+)\)$/.exec(v.query);
        const all = await this.get(`label/${label}/values`, { 'match[]': interpolate(match, values, dashboard) });
        values[v.name] = chosen[v.name] ?? (v.includeAll ? '$__all' : all[0]);
        v.found = all;
      }
    }
    return values;
  }

  step(panel, width) {
    const points = panel.maxDataPoints ?? width;
    const wanted = Math.max((this.to - this.from) / points, panel.interval ? seconds(panel.interval) : this.scrape);
    return nice.find((s) => s >= wanted) ?? wanted;
  }

  // frames runs the queries of a panel.
  async frames(panel, width, variables, dashboard) {
    const step = this.step(panel, width);
    const macros = {
      ...variables, __interval: `${step}s`, __rate_interval: `${Math.max(step + this.scrape, 4 * this.scrape)}s`, __range: `${this.to - this.from}s`,
    };
    const tables = panel.targets.filter((t) => t.format === 'table').length;
    const all = await Promise.all(panel.targets.map(async (target) => {
      const query = interpolate(target.expr, macros, dashboard);
      if (target.instant) {
        const { result } = await this.get('query', { query, time: this.to });
        return target.format === 'table' ? [table(result, target.refId, tables)] : result.map((r) => series(r, [r.value], target));
      }
      const from = Math.floor(this.from / step) * step;
      const { result } = await this.get('query_range', { query, start: from, end: this.to, step });
      if (target.format === 'heatmap') return [{ heat: result, step }];
      const lines = result.map((r) => series(r, r.values, target, step, from, this.to));
      return target.exemplar ? [...lines, ...await this.exemplars(query)] : lines;
    }));
    return all.flat();
  }

  async exemplars(query) {
    const found = (await this.get('query_exemplars', { query, start: this.from, end: this.to })).flatMap((s) => s.exemplars);
    if (!found.length) return [];
    found.sort((a, b) => a.timestamp - b.timestamp);
    return [toDataFrame({
      name: 'exemplars',
      fields: [
        { name: 'Time', type: FieldType.time, values: found.map((e) => e.timestamp * 1000) },
        { name: 'Value', type: FieldType.number, values: found.map((e) => Number(e.value)), config: { displayNameFromDS: 'exemplars' } },
      ],
    })];
  }
}

// interpolate puts the values of variables into a text.
export function interpolate(text, values, dashboard) {
  return text.replace(/\$\{(\w+)(?::\w+)?\}|\$(\w+)/g, (whole, braced, bare) => {
    const value = values[braced ?? bare];
    if (value === undefined) return whole;
    if (value === '$__all') return dashboard.templating.list.find((v) => v.name === (braced ?? bare)).allValue;
    return value;
  });
}

function series(result, points, target, step, from, to) {
  const { __name__, ...labels } = result.metric;
  const name = (target.legendFormat || '').replace(/\{\{(\w+)\}\}/g, (_, l) => labels[l] ?? '') || __name__ || 'Value';
  // Where there is no sample, there is a gap.
  let values = points;
  if (step) {
    const at = new Map(points.map(([t, v]) => [t, v]));
    values = [];
    for (let t = from; t <= to; t += step) values.push([t, at.get(t) ?? null]);
  }
  return toDataFrame({
    refId: target.refId,
    fields: [
      { name: 'Time', type: FieldType.time, values: values.map(([t]) => t * 1000) },
      { name: 'Value', type: FieldType.number, labels, config: { displayNameFromDS: name }, values: values.map(([, v]) => number(v)) },
    ],
  });
}

function table(result, refId, tables) {
  const labels = [...new Set(result.flatMap((r) => Object.keys(r.metric)))].filter((l) => l !== '__name__');
  return toDataFrame({
    refId,
    fields: [
      { name: 'Time', type: FieldType.time, values: result.map((r) => r.value[0] * 1000) },
      ...labels.map((l) => ({ name: l, type: FieldType.string, values: result.map((r) => r.metric[l] ?? '') })),
      { name: tables > 1 ? `Value #${refId}` : 'Value', type: FieldType.number, values: result.map((r) => number(r.value[1])) },
    ],
  });
}

const number = (v) => (v === null || v === 'NaN' ? null : v === '+Inf' ? Infinity : v === '-Inf' ? -Infinity : Number(v));
