require("https").get("https://api.example.com/items/1", (answer) => answer.pipe(process.stdout));
