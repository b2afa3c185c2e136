// The pictures of the README, made when PICTURES names a directory.

import { join } from "node:path";

export async function pictures({ browser, open, ready }, site) {
  const directory = process.env.PICTURES;
  if (!directory) return;
  for (const [name, path] of [["overview", "/"], ["task", "/task/lint"]]) {
    const page = await open(browser, site, { scheme: "light", width: 960 });
    await page.setViewportSize({ width: 960, height: 560 });
    await page.goto(site.address.url);
    await ready(page);
    await page.goto(site.origin + path);
    await ready(page);
    await page.screenshot({ path: join(directory, `page-${name}.png`) });
    await page.context().close();
  }
}
