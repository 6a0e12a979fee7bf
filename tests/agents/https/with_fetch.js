const ask = async () => {
  const made = await fetch("https://api.example.com/items", {
    method: "POST", headers: { "content-type": "application/json" }, body: '{"n": 1, "name": "cup"}',
  });
  if (made.status !== 201) throw new Error(`status ${made.status}`);
  console.log(await (await fetch("https://api.example.com/items/1")).text());
};
ask();
