// A person at Chromium who logs in, for Toolway's tests.
//
// Usage: node chromium_login.mjs CHROMIUM URL NAME FOLDER
//
// Opens URL in a headless CHROMIUM with a profile of its own below FOLDER, types NAME where a form
// asks for `login` and any password, and presses the button of each form until a page has none.
// Keyboard and mouse are the browser's own, so what cannot be clicked is not clicked. Prints a
// JSON array on stdout: `url`, `headline` and `text` of each page, and `loads`: the addresses of what
// it has loaded beside itself. Each page's picture is in FOLDER as `page-N.png`.
// Chromium is driven through a pipe (`--remote-debugging-pipe`): no port is opened. It knows no name
// but this machine's, so that no page gets anything from elsewhere.

import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const [program, start, name, folder] = process.argv.slice(2);
if (!folder) {
  console.error('usage: chromium_login.mjs CHROMIUM URL NAME FOLDER');
  process.exit(2);
}
const PATIENCE = 60_000;

const chromium = spawn(
  program,
  [
    '--headless=new',
    // Where tests run as root, in containers, there is no sandbox to be had.
    '--no-sandbox',
    '--disable-gpu',
    '--disable-dev-shm-usage',
    '--no-first-run',
    '--disable-background-networking',
    '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
    '--window-size=900,700',
    `--user-data-dir=${join(folder, 'profile')}`,
    '--remote-debugging-pipe',
    'about:blank',
  ],
  { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] }
);
const giveUp = (why) => {
  console.error(why);
  chromium.kill('SIGKILL');
  process.exit(1);
};
chromium.on('error', giveUp);
chromium.on('exit', () => process.exitCode ?? giveUp('Chromium ended'));
setTimeout(() => giveUp('this took too long'), 2 * PATIENCE).unref();

const waiting = new Map();
let count = 0;
let rest = '';
chromium.stdio[4].setEncoding('utf8').on('data', (chunk) => {
  const parts = (rest + chunk).split('\0');
  rest = parts.pop();
  for (const part of parts) {
    const message = JSON.parse(part);
    waiting.get(message.id)?.(message);
    waiting.delete(message.id);
  }
});
let sessionId;
async function ask(method, params = {}) {
  const id = ++count;
  const answer = await new Promise((done) => {
    waiting.set(id, done);
    chromium.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
  });
  if (answer.error) {
    throw new Error(`${method}: ${answer.error.message}`);
  }
  return answer.result;
}
const look = async (expression) => {
  const { result } = await ask('Runtime.evaluate', { expression, returnByValue: true });
  return result.value;
};
const pause = () => new Promise((done) => setTimeout(done, 50));

/** The page, once it is there and is another one than before. */
async function nextPage(before) {
  const end = Date.now() + PATIENCE;
  while (Date.now() < end) {
    // While a page goes, there is nothing to look at.
    const page = await look(
      `document.readyState === 'complete' && location.href !== 'about:blank' && {
        born: performance.timeOrigin, url: location.href,
        headline: document.querySelector('h1')?.innerText,
        text: document.body.innerText,
        loads: performance.getEntriesByType('resource').map((entry) => entry.name), asks: !!document.querySelector('form') }`
    ).catch(() => undefined);
    if (page && page.born !== before) {
      return page;
    }
    await pause();
  }
  return giveUp('no page came');
}

async function click(selector) {
  const place = await look(
    `(() => { const e = document.querySelector(${JSON.stringify(selector)});
      if (!e) return null;
      e.scrollIntoView(); const r = e.getBoundingClientRect();
      return { x: r.x + r.width / 2, y: r.y + r.height / 2 } })()`
  );
  if (place) {
    for (const type of ['mousePressed', 'mouseReleased']) {
      await ask('Input.dispatchMouseEvent', { type, ...place, button: 'left', clickCount: 1 });
    }
  }
  return place !== null;
}

const { targetInfos } = await ask('Target.getTargets');
const { targetId } = targetInfos.find((target) => target.type === 'page');
({ sessionId } = await ask('Target.attachToTarget', { targetId, flatten: true }));
await ask('Page.enable');
await ask('Page.navigate', { url: start });
const pages = [];
let born;
for (let step = 1; step <= 10; step += 1) {
  const page = await nextPage(born);
  born = page.born;
  const { data } = await ask('Page.captureScreenshot');
  await writeFile(join(folder, `page-${step}.png`), Buffer.from(data, 'base64'));
  const { url, headline, text, loads } = page;
  pages.push({ url, headline, text, loads });
  if (!page.asks) {
    break;
  }
  for (const [field, text] of [['login', name], ['password', 'any']]) {
    if (await click(`form input[name="${field}"]`)) {
      await ask('Input.insertText', { text });
    }
  }
  if (!(await click('form [type="submit"]'))) {
    giveUp(`no button at ${page.url}`);
  }
}
process.exitCode = 0;
sessionId = undefined;
const ended = new Promise((done) => chromium.on('exit', done));
await ask('Browser.close').catch(() => undefined);
await ended;
console.log(JSON.stringify(pages));
