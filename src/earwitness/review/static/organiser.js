"use strict";
// The server draws; every few seconds the drawn part is fetched and put in place of the old one.
(() => {
  const EVERY_MS = 5000;
  const renew = async () => {
    if (!document.hidden && !document.getElementById("live").contains(document.activeElement)) {
      try {
        const response = await fetch(location.href, { credentials: "same-origin" });
        if (response.ok) {
          const page = new DOMParser().parseFromString(await response.text(), "text/html");
          const fresh = page.getElementById("live");
          const old = document.getElementById("live");
          if (fresh && fresh.innerHTML !== old.innerHTML) old.replaceWith(document.adoptNode(fresh));
        }
      } catch { /* the server is away; what is shown stays */ }
    }
    setTimeout(renew, EVERY_MS);
  };
  setTimeout(renew, EVERY_MS);
})();
