from openai import OpenAI

client = OpenAI(api_key="none", base_url="https://api.example.com/v1")
answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "price?"}])
print(answer.choices[0].message.content)
