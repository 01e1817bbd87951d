// One component a kind of panel. Lines, stats, bars and tables are Grafana's own; heat maps and state timelines, which
// Grafana keeps in its server's tree, are drawn here.
import React from 'react';
import { BigValue, TimeSeries, VizRepeater, useTheme2 } from '@grafana/ui';
import { TableNG } from '@grafana/ui/unstable';
import {
  applyFieldOverrides, cacheFieldDisplayNames, FieldConfigOptionsRegistry, formattedValueToString, getFieldDisplayName, getFieldDisplayValues,
  getValueFormat, renderTextPanelMarkdown, standardTransformers, standardTransformersRegistry, transformDataFrame,
} from '@grafana/data';
import { lastValueFrom } from 'rxjs';

const { mergeTransformer, organizeFieldsTransformer } = standardTransformers;
standardTransformersRegistry.setInit(() => [mergeTransformer, organizeFieldsTransformer].map((transformation) => ({
  id: transformation.id, name: transformation.name, transformation: async () => transformation,
})));

// Grafana builds this registry from its panels' editors; what is not in it is ignored.
const options = new FieldConfigOptionsRegistry(() => [
  ...['unit', 'decimals', 'min', 'max', 'thresholds', 'color', 'mappings', 'noValue', 'displayName', 'links'].map((id) => option(id, id, false)),
  ...['drawStyle', 'lineWidth', 'lineStyle', 'lineInterpolation', 'fillOpacity', 'fillBelowTo', 'gradientMode', 'showPoints', 'pointSize', 'spanNulls',
    'stacking', 'barWidthFactor', 'barAlignment', 'axisPlacement', 'axisSoftMin', 'axisSoftMax', 'axisBorderShow', 'scaleDistribution', 'thresholdsStyle',
    'hideFrom', 'cellOptions', 'width', 'align'].map((id) => option(`custom.${id}`, id, true)),
]);

function option(id, path, isCustom) {
  return { id, path, isCustom, name: id, process: (value) => value, shouldApply: () => true, override: null, editor: null };
}

export async function prepare(panel, frames, theme) {
  const plain = frames.filter((f) => !f.heat);
  const defaults = panel.fieldConfig?.defaults ?? {};
  let series = plain;
  if (panel.transformations?.length) series = await lastValueFrom(transformDataFrame(panel.transformations, plain));
  const lines = panel.type === 'timeseries';
  const finished = applyFieldOverrides({
    data: series, theme, timeZone: 'utc', replaceVariables: (s) => s, fieldConfigRegistry: options,
    fieldConfig: {
      defaults: { color: { mode: lines ? 'palette-classic' : 'thresholds' }, thresholds: { mode: 'absolute', steps: [{ value: -Infinity, color: 'green' }] }, ...defaults },
      overrides: [...(panel.fieldConfig?.overrides ?? []), {
        matcher: { id: 'byName', options: 'exemplars' }, properties: [
          { id: 'custom.drawStyle', value: 'points' }, { id: 'custom.pointSize', value: 4 }, { id: 'custom.fillOpacity', value: 100 },
          { id: 'color', value: { mode: 'fixed', fixedColor: 'rgba(110,159,255,0.55)' } },
          { id: 'custom.hideFrom', value: { legend: true, tooltip: true, viz: false } }],
      }],
    },
  });
  cacheFieldDisplayNames(finished);
  return finished;
}

export function Panel({ panel, width, height, frames, raw, timeRange, fill }) {
  const theme = useTheme2();
  const Kind = kinds[panel.type];
  if (panel.type !== 'text' && !raw.some((f) => (f.heat ? f.heat.length : f.length))) {
    return <div style={{ height, display: 'flex', alignItems: 'center', justifyContent: 'center', color: theme.colors.text.secondary }}>
      {panel.fieldConfig?.defaults?.noValue ?? 'No data'}
    </div>;
  }
  return <Kind {...{ panel, width, height, frames, raw, timeRange, theme, fill }} />;
}

const kinds = { timeseries: Lines, stat: Stats, table: Rows, text: Text, heatmap: Heat, 'state-timeline': Strip };

function Lines({ panel, width, height, frames, timeRange }) {
  return <TimeSeries frames={frames} width={width} height={height} timeRange={timeRange} timeZone="utc"
    legend={{ ...panel.options.legend, calcs: [] }} structureRev={1} replaceVariables={(s) => s} />;
}

function displayValues(panel, frames, theme) {
  return getFieldDisplayValues({
    fieldConfig: panel.fieldConfig, reduceOptions: panel.options.reduceOptions, data: frames, theme, timeZone: 'utc', replaceVariables: (s) => s,
  });
}

function Stats({ panel, width, height, frames, theme }) {
  const { options: o } = panel;
  const values = displayValues(panel, frames, theme);
  return <VizRepeater getValues={() => values} source={frames} orientation="auto" width={width} height={height} itemSpacing={4} renderCounter={0}
    renderValue={({ value, width: w, height: h, count }) => {
      const display = { ...value.display };
      if (o.textMode === 'name') return <BigValue {...{ theme }} value={{ ...display, text: display.title, prefix: '', suffix: '', title: '' }} width={w} height={h} colorMode={o.colorMode} graphMode="none" />;
      return <BigValue theme={theme} value={display} width={w} height={h} count={count} colorMode={o.colorMode} graphMode={o.graphMode}
        textMode={o.textMode} justifyMode={o.justifyMode} wideLayout={o.wideLayout} />;
    }} />;
}

function Rows({ panel, width, height, frames }) {
  return <TableNG data={frames[0]} width={width} height={height} cellHeight="sm" structureRev={1} initialSortBy={panel.options.sortBy} />;
}

function Text({ panel, fill }) {
  return <div className="markdown-html" style={{ padding: '0 8px', fontSize: 13, lineHeight: 1.5 }}
    dangerouslySetInnerHTML={{ __html: renderTextPanelMarkdown(fill(panel.options.content)) }} />;
}

// cells turns the answer of a heat map's query into cells: seconds, from and to of the bucket, count.
function cells(result) {
  const all = [];
  const native = result.find((r) => r.histograms);
  if (native) {
    for (const [t, h] of native.histograms) for (const [, lo, hi, n] of h.buckets ?? []) all.push([t, Number(lo), Number(hi), Number(n)]);
    return all;
  }
  const classic = result.filter((r) => r.metric.le !== undefined).sort((a, b) => Number(a.metric.le.replace('+Inf', 'Infinity')) - Number(b.metric.le.replace('+Inf', 'Infinity')));
  classic.forEach((r, i) => {
    const below = new Map(i ? classic[i - 1].values : []);
    const lo = i ? Number(classic[i - 1].metric.le) : 0;
    const hi = r.metric.le === '+Inf' ? lo * 2 : Number(r.metric.le);
    for (const [t, v] of r.values) all.push([t, lo, hi, Number(v) - Number(below.get(t) ?? 0)]);
  });
  return all;
}

function Heat({ panel, width, height, raw, timeRange, theme }) {
  const all = cells(raw[0].heat).filter(([t, , hi, n]) => n > 0.01 && hi > 1e-6 && t > timeRange.from.valueOf() / 1000); // without a native histogram's zero bucket
  const left = 56, bottom = 20;
  const [w, h] = [width - left - 8, height - bottom - 6];
  const los = all.map(([, lo, hi]) => (lo > 0 ? lo : hi / 2));
  const [y0, y1] = [Math.log(Math.min(...los)), Math.log(Math.max(...all.map(([, , hi]) => hi)))];
  const most = Math.max(...all.map(([, , , n]) => n));
  const [from, to] = [timeRange.from.valueOf() / 1000, timeRange.to.valueOf() / 1000];
  const x = (t) => left + ((t - from) / (to - from)) * w;
  const y = (v) => 6 + h - ((Math.log(v) - y0) / (y1 - y0)) * h;
  const unit = getValueFormat(panel.options.yAxis?.unit ?? 's');
  const ticks = [...Array(5)].map((_, i) => Math.exp(y0 + ((y1 - y0) * i) / 4));
  const times = [...Array(5)].map((_, i) => from + ((to - from) * (i + 0.5)) / 5);
  const label = { fill: theme.colors.text.primary, fontSize: 12, fontFamily: theme.typography.fontFamily };
  return <svg width={width} height={height}>
    {ticks.map((v, i) => <g key={i}>
      <line x1={left} x2={left + w} y1={y(v)} y2={y(v)} stroke={theme.colors.border.weak} />
      <text x={left - 6} y={y(v) + 4} textAnchor="end" {...label}>{formattedValueToString(unit(v, v < 0.1 ? 1 : v < 1 ? 0 : 2))}</text></g>)}
    {times.map((t, i) => <text key={i} x={x(t)} y={height - 4} textAnchor="middle" {...label}>{new Date(t * 1000).toISOString().slice(11, 16)}</text>)}
    {all.map(([t, lo, hi, n], i) => {
      const top = y(hi), base = y(lo > 0 ? lo : hi / 2);
      const start = Math.max(left, x(t - raw[0].step));
      return <rect key={i} x={start + 0.5} width={Math.max(1, x(t) - start - 1)} y={top + 0.5} height={Math.max(1, base - top - 1)}
        fill={`hsl(${34 - 22 * Math.sqrt(n / most)},95%,${24 + 40 * Math.sqrt(n / most)}%)`} />;
    })}
  </svg>;
}

function Strip({ panel, width, height, frames, timeRange, theme }) {
  const left = 84, bottom = 20, row = (height - bottom) / frames.length;
  const [from, to] = [timeRange.from.valueOf(), timeRange.to.valueOf()];
  const w = width - left - 8;
  const times = [...Array(4)].map((_, i) => from + ((to - from) * (i + 0.5)) / 4);
  const label = { fill: theme.colors.text.primary, fontSize: 12, fontFamily: theme.typography.fontFamily };
  return <svg width={width} height={height}>
    {frames.map((frame, r) => {
      const [time, value] = frame.fields;
      const step = time.values[1] - time.values[0];
      return <g key={r}>
        <text x={left - 8} y={r * row + row / 2 + 4} textAnchor="end" {...label}>{getFieldDisplayName(value, frame, frames)}</text>
        {value.values.map((v, i) => v !== null && time.values[i] > from && <rect key={i} x={left + ((time.values[i] - step - from) / (to - from)) * w + 0.5}
          width={(step / (to - from)) * w - 1} y={r * row + 3} height={row - 6} fill={value.display(v).color} opacity={0.85} />)}
      </g>;
    })}
    {times.map((t, i) => <text key={i} x={left + ((t - from) / (to - from)) * w} y={height - 4} textAnchor="middle" {...label}>{new Date(t).toISOString().slice(11, 16)}</text>)}
  </svg>;
}
