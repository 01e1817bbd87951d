// Draws every dashboard from live data into dashboards/pictures/*.png, with Grafana's own React components in headless
// Chromium. There is no Grafana server in this: layout, heat maps and state timelines are ours.
//
//   EXPORTER=… PROMETHEUS=… RULES=… node draw.mjs DASHBOARDS OUT [NAME…]
//
// It starts the exporter's demo and a Prometheus that scrapes it, and waits MINUTES (default 20) for something to
// see. With PROMETHEUS_URL it draws from that server instead, at once.
import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { chromium } from 'playwright-core';
import UPNG from 'upng-js';

const here = dirname(fileURLToPath(import.meta.url));
const [dashboards, out, ...only] = process.argv.slice(2);
const env = process.env;
const scrape = 5; // seconds
const minutes = Number(env.MINUTES ?? 20);

// What each picture shows, where it is not what the dashboard opens with.
const shown = {
  'goodput-overview': { slo: 'goodput' },
  'goodput-target': { target: 'degraded', scenario: 'chat', slo: 'goodput', window: '5m' },
  'goodput-prober': { window: '5m' },
};

async function startDemo() {
  const dir = await mkdtemp(join(tmpdir(), 'pictures-'));
  const [web, api] = ['127.0.0.1:19042', '127.0.0.1:19090'];
  for (const name of (await readdir(env.RULES)).filter((n) => n.endsWith('.yml'))) {
    const rules = await readFile(join(env.RULES, name), 'utf8');
    // Alerts wait here for neither minutes nor filled windows, or there would be none to see.
    await writeFile(join(dir, name), rules.replace(/interval: \d+[sm]/g, 'interval: 5s').replace(/\bfor: \d+[mh]/g, 'for: 30s')
      .replace(/(window_fill:ratio_\w+ > )0\.25/g, '$10.001').replaceAll('[30d:5m]', '[30d:1m]'));
  }
  await writeFile(join(dir, 'prometheus.yml'), `
global: {scrape_interval: ${scrape}s, evaluation_interval: 5s}
rule_files: [goodput.*.yml]
scrape_configs:
  - job_name: goodput_exporter
    scrape_native_histograms: true
    always_scrape_classic_histograms: true
    static_configs: [{targets: ['${web}']}]
`);
  const children = [
    spawn(env.EXPORTER, ['--demo', `--web.listen-address=${web}`, '--log.level=error'], { stdio: 'inherit' }),
    spawn(env.PROMETHEUS, [`--config.file=${dir}/prometheus.yml`, `--storage.tsdb.path=${dir}/data`, `--web.listen-address=${api}`,
      '--enable-feature=exemplar-storage', '--log.level=error'], { stdio: 'inherit' }),
  ];
  console.log(`pictures: the demo runs for ${minutes} minutes first`);
  await new Promise((done) => setTimeout(done, minutes * 60e3));
  const stop = async () => {
    await Promise.all(children.map((c) => new Promise((done) => { c.once('exit', done); c.kill('SIGTERM'); })));
    await rm(dir, { recursive: true });
  };
  return { url: `http://${api}`, stop };
}

// serve gives the page to the browser, on loopback.
async function serve() {
  const { outputFiles } = await build({
    entryPoints: [join(here, 'src/page.jsx')], bundle: true, write: false, format: 'iife', jsx: 'automatic', minify: true, outdir: '/',
    loader: { '.svg': 'dataurl', '.woff2': 'dataurl', '.ttf': 'dataurl' }, define: { 'process.env.NODE_ENV': '"production"' },
    nodePaths: [join(process.cwd(), 'node_modules')], logLevel: 'error',
  });
  const text = (end) => outputFiles.find((f) => f.path.endsWith(end))?.text ?? '';
  const files = { '/page.js': ['text/javascript', text('.js')], '/page.css': ['text/css', text('.css')] };
  const html = '<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="/page.css"><body style="margin:0"><div id="page"></div><script src="/page.js"></script>';
  const server = createServer((request, response) => {
    const [type, body] = files[request.url] ?? ['text/html', html];
    response.writeHead(200, { 'content-type': type }).end(body);
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return server;
}

async function draw(page, name, prometheus) {
  const dashboard = JSON.parse(await readFile(join(dashboards, `${name}.json`), 'utf8'));
  const to = Math.floor(Date.now() / 1000);
  const height = await page.evaluate((o) => window.draw(o), {
    dashboard, variables: shown[name] ?? {}, prometheus, scrape, from: to - Number(env.SPAN ?? minutes) * 60, to,
  });
  await page.setViewportSize({ width: 1600, height });
  await page.waitForTimeout(3000); // uPlot draws, and BigValue measures, in frames of their own
  const png = UPNG.decode(await page.screenshot({ timeout: 180e3 }));
  const file = join(out, `${name}.png`);
  await writeFile(file, Buffer.from(UPNG.encode(UPNG.toRGBA8(png), png.width, png.height, 128)));
  console.log(`pictures: ${file}`);
}

const live = env.PROMETHEUS_URL ? { url: env.PROMETHEUS_URL, stop: async () => {} } : await startDemo();
const server = await serve();
const browser = await chromium.launch({ executablePath: env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });
try {
  const names = only.length ? only : (await readdir(dashboards)).filter((n) => n.endsWith('.json')).map((n) => basename(n, '.json'));
  for (const name of names) {
    const page = await browser.newPage({ viewport: { width: 1600, height: 1200 } });
    page.on('pageerror', (e) => console.error(`pictures: ${name}: ${e.message}`));
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
    await draw(page, name, live.url);
    await page.close();
  }
} finally {
  await browser.close();
  server.close();
  await live.stop();
}
