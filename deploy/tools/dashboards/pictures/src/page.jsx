// Draws one dashboard of classic JSON as Grafana lays it out: window.draw(...) in draw.mjs calls it.
import React from 'react';
import { createRoot } from 'react-dom/client';
import { createTheme, ThemeContext } from '@grafana/data';
import { PanelChrome, GlobalStyles } from '@grafana/ui';
import { interpolate, Source } from './data.js';
import { Panel, prepare } from './panels.jsx';

const width = 1600, cell = 30, gap = 8, column = (width - gap) / 24;

window.draw = async ({ dashboard, variables: chosen, ...where }) => {
  const theme = createTheme({ colors: { mode: 'dark' } });
  const source = new Source(where);
  const variables = await source.variables(dashboard, chosen);
  const panels = repeat(dashboard.panels, variables, dashboard);
  const drawn = await Promise.all(panels.map(async (p) => {
    const inner = p.panel.gridPos.w * column - gap - 18;
    const raw = p.panel.targets ? await source.frames(p.panel, inner, p.variables, dashboard) : [];
    return { ...p, raw, frames: await prepare(p.panel, raw, theme) };
  }));
  const height = Math.max(...panels.map(({ panel: { gridPos: g } }) => g.y + g.h)) * (cell + gap) + 108;
  const title = (p) => interpolate(p.panel.title ?? '', p.variables, dashboard);
  createRoot(document.getElementById('page')).render(
    <ThemeContext.Provider value={theme}>
      <GlobalStyles />
      <div style={{ width, height, position: 'relative', background: theme.colors.background.canvas, color: theme.colors.text.primary }}>
        <Head {...{ dashboard, variables, theme }} />
        {drawn.map((p, i) => {
          const g = p.panel.gridPos;
          const [x, y, w, h] = [g.x * column + gap, g.y * (cell + gap) + 100, g.w * column - gap, g.h * (cell + gap) - gap];
          const at = { position: 'absolute', left: x, top: y, width: w, height: h };
          if (p.panel.type === 'row') return <div key={i} style={{ ...at, fontSize: 16, lineHeight: `${h}px` }}>{p.panel.collapsed ? '›' : '⌄'}&nbsp; {title(p)}</div>;
          return <div key={i} style={at}><PanelChrome width={w} height={h} title={title(p)} description={p.panel.description}>
            {(iw, ih) => <Panel panel={p.panel} width={iw} height={ih} frames={p.frames} raw={p.raw} timeRange={source.timeRange}
              fill={(s) => interpolate(s, p.variables, dashboard)} />}
          </PanelChrome></div>;
        })}
      </div>
    </ThemeContext.Provider>,
  );
  return height;
};

function Head({ dashboard, variables, theme }) {
  const box = { border: `1px solid ${theme.colors.border.medium}`, borderRadius: 2, padding: '5px 8px', background: theme.components.input.background };
  return <div style={{ padding: '12px 16px', fontSize: 13 }}>
    <div style={{ fontSize: 20, fontWeight: 500, marginBottom: 12 }}>{dashboard.title}</div>
    <div style={{ display: 'flex', gap: 12 }}>
      {dashboard.templating.list.filter((v) => variables[v.name] !== undefined).map((v) => {
        const value = variables[v.name];
        const text = value === '$__all' ? 'All' : v.options?.find((o) => o.value === value)?.text ?? value;
        return <span key={v.name}><span style={{ ...box, color: theme.colors.text.secondary }}>{v.label}</span><span style={box}>{text}</span></span>;
      })}
    </div>
  </div>;
}

// repeat gives each repeated row, and the panels under it, once for each value of its variable.
function repeat(panels, variables, dashboard) {
  const rows = [];
  for (const panel of panels) {
    if (panel.type === 'row' || !rows.length) rows.push([]);
    rows.at(-1).push(panel);
  }
  let shift = 0;
  return rows.flatMap((row) => {
    const name = row[0].repeat;
    const values = name ? dashboard.templating.list.find((v) => v.name === name).found : [undefined];
    const rowHeight = Math.max(...row.map((p) => p.gridPos.y + p.gridPos.h)) - row[0].gridPos.y;
    return values.flatMap((value, i) => {
      if (i) shift += rowHeight;
      return row.map((p) => ({
        panel: { ...p, gridPos: { ...p.gridPos, y: p.gridPos.y + shift } },
        variables: value === undefined ? variables : { ...variables, [name]: value },
      }));
    });
  });
}
